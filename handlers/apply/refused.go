// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// refused returns what the API server would refuse in an object, as far as its template shows. The forms of labels
// and annotations are fixed, so these are faults. A selector that does not match and a missing image are warnings,
// because an admission webhook may complete Pods before the API server checks them.
func (c *child) refused(kind shape.Kind) []error {
	out := labelsOf(part(c.template, "metadata"))
	if !kind.Own {
		return out // other kinds may define these fields differently
	}
	spec := part(c.template, "spec")
	if kind.Kind != "CustomResourceDefinition" { // there a key is the name of a field
		out = append(out, labelsBelow(spec)...)
	}
	if c.spec.Adopt == dsl.AdoptIfUnowned { // the existing object may have what the template lacks
		return out
	}
	return append(append(out, unselected(kind, spec)...), imageless(kind, c.template)...)
}

// labelsOf returns labels and annotations that objects cannot have.
func labelsOf(metadata *expr.Template) []error {
	return append(wrongTexts(part(metadata, "labels"), true), wrongTexts(part(metadata, "annotations"), false)...)
}

// labelsBelow is labelsOf for all metadata below a place, and for selectors.
func labelsBelow(t *expr.Template) (out []error) {
	if t == nil {
		return nil
	}
	for i := range t.Entries {
		below := &t.Entries[i].Value
		switch t.Entries[i].Key.Plain {
		case "metadata":
			out = append(out, labelsOf(below)...)
		case "matchLabels", "selector", "nodeSelector":
			out = append(out, wrongTexts(below, true)...)
		case "parameters": // those of a driver have any form
			continue
		}
		out = append(out, labelsBelow(below)...)
	}
	for i := range t.List {
		out = append(out, labelsBelow(&t.List[i])...)
	}
	return out
}

// wrongTexts returns the keys of a map that labels and annotations cannot have, and the values that labels cannot
// have.
func wrongTexts(t *expr.Template, labels bool) (out []error) {
	if t == nil {
		return nil
	}
	for i := range t.Entries {
		e := &t.Entries[i]
		key, known := likely(&e.Key)
		if !labels {
			key = strings.ToLower(key) // as the API server does
		}
		if wrong := validation.IsQualifiedName(key); known && len(wrong) > 0 {
			out = append(out, &shape.Misfit{Path: e.Key.Path, Key: true, Message: "the key is not one that objects may have: " + brief(wrong[0])})
		}
		value, known := likely(&e.Value)
		if wrong := validation.IsValidLabelValue(value); labels && known && len(wrong) > 0 {
			out = append(out, misfit(&e.Value, "the value is not one that labels may have: "+brief(wrong[0])))
		}
	}
	return out
}

// likely returns a text with each expression replaced by a letter, which is valid everywhere. It reports false for
// a text that is a single expression, and for a value that is not text.
func likely(t *expr.Template) (text string, known bool) {
	if len(t.Pieces) == 0 {
		text, known = t.Plain.(string)
		return text, known
	}
	for _, piece := range t.Pieces {
		if piece.Program != nil {
			piece.Text = "x"
		}
		text += piece.Text
	}
	return text, len(t.Pieces) > 1
}

// brief shortens an error about a name: it removes examples and regular expressions.
func brief(wrong string) string {
	wrong, _, _ = strings.Cut(wrong, " (e.g.")
	return wrong
}

// unselected returns labels that a workload selects and its own Pods lack. It ignores expressions.
func unselected(kind shape.Kind, spec *expr.Template) (out []error) {
	if !slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"}, kind.Kind) {
		return nil
	}
	wanted, template := part(part(spec, "selector"), "matchLabels"), part(spec, "template")
	if wanted == nil || template == nil {
		return nil
	}
	labels, all := template, true
	for _, key := range []string{"metadata", "labels"} {
		all = all && keysKnown(labels)
		labels = part(labels, key)
	}
	all = all && keysKnown(labels)
	for i := range wanted.Entries {
		e := &wanted.Entries[i]
		key, isText := e.Key.Plain.(string)
		if !isText || len(e.Key.Pieces) > 0 {
			continue
		}
		where := "(spec.template.metadata.labels), so the API server refuses the " + kind.Kind
		switch has := part(labels, key); {
		case has == nil && all && !mayBeLeftOut(&e.Value):
			out = append(out, doubt(&e.Value, fmt.Sprintf("its Pods have no label %s %s", key, where)))
		case has != nil && differ(has, &e.Value):
			out = append(out, doubt(&e.Value, fmt.Sprintf("its Pods have %s: %v %s", key, has.Plain, where)))
		}
	}
	return out
}

// keysKnown reports whether the template has all keys of a map. A missing map has none.
func keysKnown(t *expr.Template) bool {
	return t == nil || len(t.Pieces) == 0 && !slices.ContainsFunc(t.Entries, func(e expr.Entry) bool { return len(e.Key.Pieces) > 0 })
}

// mayBeLeftOut reports whether a value may be null or an absent optional.
func mayBeLeftOut(t *expr.Template) bool {
	if len(t.Pieces) != 1 {
		return t.Plain == nil
	}
	tree := t.Pieces[0].Program.AST()
	of := tree.GetType(tree.Expr().ID())
	return of.TypeName() == types.OptionalType.TypeName()
}

// differ reports whether two texts without expressions differ.
func differ(a, b *expr.Template) bool {
	one, isText := a.Plain.(string)
	other, too := b.Plain.(string)
	return isText && too && len(a.Pieces)+len(b.Pieces) == 0 && one != other
}

// imageless returns containers without an image.
func imageless(kind shape.Kind, t *expr.Template) (out []error) {
	for _, key := range podSpec(kind) {
		t = part(t, key)
	}
	for _, key := range []string{"initContainers", "containers"} {
		list := part(t, key)
		for i := 0; list != nil && i < len(list.List); i++ {
			one := &list.List[i]
			tree, isMap := one.Plain.(map[string]any)
			image := part(one, "image")
			switch {
			case !isMap, !keysKnown(one), image == nil && nearly(tree, "image") != "": // it is reported elsewhere
			case image == nil, image.Plain == nil, image.Plain == "":
				out = append(out, doubt(one, "there is no image, so the API server refuses the "+kind.Kind))
			}
		}
	}
	return out
}

// podSpec returns the path of the Pod spec in a kind; nil for kinds without Pods.
func podSpec(kind shape.Kind) []string {
	switch kind.Kind {
	case "Pod":
		return []string{"spec"}
	case "PodTemplate":
		return []string{"template", "spec"}
	case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job":
		return []string{"spec", "template", "spec"}
	case "CronJob":
		return []string{"spec", "jobTemplate", "spec", "template", "spec"}
	}
	return nil
}
