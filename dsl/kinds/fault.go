// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl/shape"
	"github.com/handwerk-dev/handwerk/dsl/words"
)

// question is the search for a kind or a resource that was not found.
type question struct {
	*List
	gv   schema.GroupVersion
	name string
	// what is its name, and at the field of an object that has the name; empty if the name is not from an object.
	what, at string
	// is reports whether a kind has the name; called returns the name of a kind.
	is     func(k Kind, name string) bool
	called func(Kind) string
}

// fault says why it was not found; nil if it may exist. An unknown group may come with a CRD.
func (q *question) fault() error {
	group := q.of(func(k Kind) bool { return k.Group == q.gv.Group })
	switch {
	case q.Unsure(q.gv.Group):
		return nil
	case len(group) == 0:
		return q.noGroup()
	case q.gv.Version != "" && !slices.ContainsFunc(group, func(k Kind) bool { return k.Version == q.gv.Version }):
		return q.noVersion(group)
	case q.Own(q.gv.Group):
		return q.noKind()
	}
	// More kinds of such a group may exist, so only a very similar name is probably mistyped.
	here := q.of(q.here)
	if near, found := words.Nearest(q.name, q.names(here)); found {
		return misfit(q.at, !q.Final, "%s (did you mean %q?)", q.unknown(), near)
	}
	return nil
}

// noGroup is the fault of an unknown group. Only built-in groups have no dot.
func (q *question) noGroup() error {
	elsewhere := q.of(func(k Kind) bool { return q.is(k, q.name) && q.Own(k.Group) })
	near := slices.IndexFunc(elsewhere, func(k Kind) bool { _, near := words.Nearest(q.gv.Group, []string{k.Group}); return near })
	switch dotted := strings.Contains(q.gv.Group, "."); {
	case near >= 0:
		return misfit(q.versionAt(), dotted, "there is no API group %s (did you mean %s?)", q.gv.Group, q.written(elsewhere[near]))
	case !dotted && len(elsewhere) > 0:
		return misfit(q.versionAt(), false, "there is no API group %s: want %s", q.gv.Group, q.all(elsewhere))
	case !dotted:
		return misfit(q.versionAt(), false, "there is no API group %s (groups other than Kubernetes' own have a dot)", q.gv.Group)
	}
	return nil
}

// noVersion is the fault of an unknown version of a known group. An older or a newer Kubernetes may have it.
func (q *question) noVersion(group []Kind) error {
	named := slices.DeleteFunc(slices.Clone(group), func(k Kind) bool { return !q.is(k, q.name) })
	if len(named) == 0 {
		named = q.of(func(k Kind) bool { return q.is(k, q.name) && q.Own(k.Group) })
	}
	warning := !q.Final || !q.Own(q.gv.Group)
	text := fmt.Sprintf("%s has no API version %s", q.Where, q.gv)
	if !q.Own(q.gv.Group) {
		text = fmt.Sprintf("API version %s is not known", q.gv)
	}
	if len(named) > 0 {
		text += ": want " + q.all(named)
	}
	return misfit(q.versionAt(), warning, "%s", text)
}

// noKind is the fault of an unknown kind in a known group and version, whose kinds are all known.
func (q *question) noKind() error {
	here := q.of(q.here)
	if near, found := words.Nearest(q.name, q.names(here)); found && q.exactly() == "" {
		return misfit(q.at, false, "%s (did you mean %q?)", q.unknown(), near)
	}
	if want := q.exactly(); want != "" {
		return misfit(q.versionAt(), false, "%s has no %s: want %s", q.place(), q.name, want)
	}
	everywhere := q.of(func(Kind) bool { return true })
	if near, found := words.Nearest(q.name, q.names(everywhere)); found {
		i := slices.IndexFunc(everywhere, func(k Kind) bool { return q.called(k) == near })
		return misfit(q.at, false, "%s (did you mean %s?)", q.unknown(), q.full(everywhere[i]))
	}
	if q.gv.Empty() { // more probably a resource without its group than a mistyped one of the core group
		return misfit(q.at, false, "%s (want the plural and the group, as in widgets.example.com)", q.unknown())
	}
	return misfit(q.at, false, "%s (%s)", q.unknown(), words.Hint(q.name, q.names(here)))
}

// versionAt is the field of an object that has the version; empty if there is no object.
func (q *question) versionAt() string {
	if q.at == "" {
		return ""
	}
	return "apiVersion"
}

// exactly says where the same name exists; empty if nowhere.
func (q *question) exactly() string {
	found := q.of(func(k Kind) bool { return q.is(k, q.name) })
	same := slices.DeleteFunc(slices.Clone(found), func(k Kind) bool { return k.Group != q.gv.Group })
	if len(same) > 0 {
		found = same
	}
	if len(found) == 0 {
		return ""
	}
	return q.all(found)
}

func (q *question) unknown() string {
	return fmt.Sprintf("unknown %s %q in %s", q.what, q.name, q.place())
}

// place names the group and version that were searched, in the form for people.
func (q *question) place() string {
	switch {
	case q.gv.Group == "" && q.gv.Version == "":
		return "the core group"
	case q.gv.Version == "":
		return q.gv.Group
	}
	return q.gv.String()
}

// here reports whether a kind is in the group and version that were searched.
func (q *question) here(k Kind) bool {
	return k.Group == q.gv.Group && (q.gv.Version == "" || k.Version == q.gv.Version)
}

// of returns the kinds for which holds is true, without duplicates.
func (q *question) of(holds func(Kind) bool) (out []Kind) {
	for _, k := range q.Kinds {
		if holds(k) && (q.at != "" || k.Watched) {
			out = append(out, k)
		}
	}
	return out
}

func (q *question) names(of []Kind) (out []string) {
	for _, k := range of {
		if !slices.Contains(out, q.called(k)) {
			out = append(out, q.called(k))
		}
	}
	return out
}

// written returns the replacement that names a kind: the version of an object, or a whole resource.
func (q *question) written(k Kind) string {
	switch {
	case q.at != "":
		return k.GroupVersion().String()
	case k.Group == "":
		return k.Resource + "." + k.Version
	}
	return k.Resource + "." + k.Version + "." + k.Group
}

// full is written with the kind's name.
func (q *question) full(k Kind) string {
	if q.at == "" {
		return q.written(k)
	}
	return fmt.Sprintf("%q of %s", k.Kind, q.written(k))
}

func (q *question) all(of []Kind) string {
	var out []string
	for _, k := range of {
		if text := q.written(k); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return strings.Join(out, " or ")
}

func misfit(at string, warning bool, format string, args ...any) error {
	out := &shape.Misfit{Message: fmt.Sprintf(format, args...), Warning: warning}
	if at != "" {
		out.Path = []string{at}
	}
	return out
}
