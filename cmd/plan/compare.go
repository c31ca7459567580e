// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json" // keeps whole numbers whole

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
)

// Comparer compares objects before and after an operator has run.
type Comparer struct {
	keys ownership.Keys
	// own has the places of objects that a plan leaves out: the operator keeps them for itself, or only the twin has them.
	own map[place]bool
	// secrets are the values of Secrets that are known.
	secrets secrets
}

// NewComparer returns a comparer for an operator that is deployed in a namespace.
func NewComparer(op *dsl.Operator, namespace string) *Comparer {
	c := &Comparer{keys: ownership.KeysOf(op), own: map[place]bool{}}
	for _, each := range op.OwnPlaces(namespace) {
		c.own[place{each.Resource, each.Namespace, each.Name}] = true
	}
	return c
}

// ignore ignores CRDs, which are in the twin alone.
func (c *Comparer) ignore(crds []*unstructured.Unstructured) {
	for _, crd := range crds {
		c.own[place{schema.GroupResource{Group: crdGroup, Resource: "customresourcedefinitions"}, "", crd.GetName()}] = true
	}
}

// hide hides the values of Secrets among some objects, wherever a change has them.
func (c *Comparer) hide(objects []*unstructured.Unstructured) {
	for _, o := range objects {
		c.secrets.add(o)
	}
}

// hideIn hides values of Secrets in a change.
func (c *Comparer) hideIn(change *Change) {
	for i, f := range change.Fields {
		before, after := c.secrets.mask(f.Before), c.secrets.mask(f.After)
		if before == hidden && after == hidden {
			after = hiddenToo
		}
		change.Fields[i].Before, change.Fields[i].After = before, after
	}
}

// changes returns the differences of objects that were written in the twin.
func (c *Comparer) changes(r *recorder) (out []Change) {
	for at, t := range r.touched {
		if c.own[at] {
			continue
		}
		before, after := decoded(t.before), decoded(r.read(at))
		c.hide([]*unstructured.Unstructured{after})
		change := c.Compare(before, after, t.sent, t.status)
		if change == nil || !t.operator && change.Action != Deleted {
			continue // the cluster itself writes as well
		}
		if withoutUnknown(change); change.Action == Changed && len(change.Fields) == 0 {
			continue
		}
		out = append(out, *change)
	}
	for i := range out {
		c.hideIn(&out[i])
	}
	Sort(out)
	return out
}

// decoded returns the object of a JSON text, or nil.
func decoded(text []byte) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	if text == nil || utiljson.Unmarshal(text, &o.Object) != nil {
		return nil
	}
	return o
}

// Compare returns the difference between two states of an object; nil if they are equal. Before is nil if the object did not exist, and
// after if it no longer exists. Sent is the last body with which the operator has created or applied it; nil stands for the whole
// object. Status: the operator wrote to the status, so the status counts.
func (c *Comparer) Compare(before, after *unstructured.Unstructured, sent map[string]any, status bool) *Change {
	if before == nil && after == nil {
		return nil
	}
	shown := after
	if after == nil {
		shown = before
	}
	out := &Change{APIVersion: shown.GetAPIVersion(), Kind: shown.GetKind(), Namespace: shown.GetNamespace(), Name: shown.GetName()}
	diff := &comparison{prefix: c.keys.Prefix, secret: out.Kind == "Secret" && out.APIVersion == "v1", status: status || before == nil}
	switch {
	case isDeleted(before, after):
		out.Action = Deleted
		if after != nil {
			out.Effect = "waits for " + strings.Join(after.GetFinalizers(), ", ")
		}
		return out
	case before == nil:
		out.Action = Created
		if sent == nil {
			sent = after.Object
		}
		diff.compare(nil, sent)
		out.Fields = diff.fields
		return out
	}
	return c.changed(out, diff, before, after)
}

// isDeleted reports whether an object goes, or begins to.
func isDeleted(before, after *unstructured.Unstructured) bool {
	return after == nil || before != nil && before.GetUID() == after.GetUID() && isDeleting(after) && !isDeleting(before)
}

// changed completes the change of an object that exists before and after; nil if its states are equal.
func (c *Comparer) changed(out *Change, diff *comparison, before, after *unstructured.Unstructured) *Change {
	diff.compare(before.Object, after.Object)
	out.Fields, out.Action = diff.fields, Changed
	switch {
	case before.GetUID() != after.GetUID():
		out.Action = Recreated
	case c.isOrphaned(before, after):
		out.Action = Orphaned
	case len(diff.fields) == 0 && diff.marks:
		out.Action = Marked
	case len(diff.fields) == 0:
		return nil
	}
	out.Effect = effectOf(out)
	return out
}

func isDeleting(o *unstructured.Unstructured) bool { return o.GetDeletionTimestamp() != nil }

// isOrphaned reports whether the operator has given up a child.
func (c *Comparer) isOrphaned(before, after *unstructured.Unstructured) bool {
	tied := func(o *unstructured.Unstructured) bool {
		return c.keys.Made(o) && (metav1.GetControllerOfNoCopy(o) != nil || o.GetLabels()[c.keys.Label] != "")
	}
	return tied(before) && !tied(after)
}

// effectOf returns what follows from the change of a workload.
func effectOf(c *Change) string {
	if !strings.HasPrefix(c.APIVersion, "apps/") || c.Action != Changed {
		return ""
	}
	if slices.ContainsFunc(c.Fields, func(f Field) bool { return strings.HasPrefix(f.Path, "spec.template.") }) {
		return "its Pods restart"
	}
	return ""
}

// Sort sorts changes by action, kind, namespace and name.
func Sort(changes []Change) {
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Or(
			cmp.Compare(slices.Index(Actions(), a.Action), slices.Index(Actions(), b.Action)),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		)
	})
}
