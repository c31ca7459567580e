// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// state is the state of a child of the configuration in this reconcile.
type state struct {
	child   *child
	objects []*object
	// excluded: it is not desired.
	excluded bool
	// open: it is not complete, so children that need it must wait.
	open bool
	// inputs is what the template reads of the handled object, once it is needed.
	inputs []any
	// result has its failures and waits.
	result result
}

// note notes which of a child's objects are not as desired.
func (st *state) note() {
	for _, o := range st.objects {
		switch {
		case o.err != nil:
			st.result.fail(o.label(), o.said())
		case o.ending():
			st.result.wait(0, "%s to be gone, so that it can be made again%s", o.label(), holders(o.live))
		default:
			st.result.outdated(o)
			continue
		}
		st.open = true
	}
}

// awaitReady checks readyWhen of each object.
func (st *state) awaitReady(in inputs) {
	if st.child.ready == nil {
		return
	}
	for _, o := range st.objects {
		if o.err != nil || o.held || o.ending() {
			continue
		}
		ready, err := in.holds(st.child.ready, o)
		switch {
		case err != nil:
			st.result.fail(o.label(), wrong(reasonUnresolved, "evaluating readyWhen: %w", err))
		case !ready:
			st.result.wait(0, "%s to be ready", o.label())
		}
		st.open = st.open || err != nil || !ready
	}
}

// states are the states of the children that the reconcile has come to, by name.
type states map[string]*state

// blocked reports whether a child must wait for one that it needs.
func (s states) blocked(c *child) bool {
	return slices.ContainsFunc(c.needs, func(name string) bool { return s[name].open })
}

// excluded reports whether a child is not desired.
func (s states) excluded(name string) bool { return s[name] != nil && s[name].excluded }

// split splits names of children into those that are not desired, and the others.
func (s states) split(names []string) (excluded, others []string) {
	for _, name := range names {
		if s.excluded(name) {
			excluded = append(excluded, name)
		} else {
			others = append(others, name)
		}
	}
	return excluded, others
}

// live returns the existing objects, sorted by the names of children.
func (s states) live() (out []dsl.ChildObject) {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		for _, o := range s[name].objects {
			if live := o.read(); live != nil {
				out = append(out, dsl.ChildObject{ChildSpec: o.spec(), Object: live})
			}
		}
	}
	return out
}

// object is one desired object.
type object struct {
	child *child
	key   string
	// called is its name for people, from the configuration; hidden: people must not see another name while it does
	// not exist.
	called  string
	hidden  bool
	vars    map[string]any
	desired map[string]any
	place   place
	// live is the object as applied, or as found; nil if it is not known.
	live *unstructured.Unstructured
	// settled is the object if it need not be applied; desired is nil then.
	settled *dsl.SettledChild
	// inputs is a hash of what it was made from, zero if that is not known, and size is how large it came out.
	inputs uint64
	size   int
	err    error
	// generated: the template has made a value that the object did not have.
	generated bool
	// held: its update must wait for that of others. outdated: it stays as it is, although its template has changed, for the
	// reason that is given.
	held     bool
	outdated string
	// update, if set, is the policy in the place of the child's.
	update dsl.UpdatePolicy
}

// spec says how the object is kept.
func (o *object) spec() dsl.ChildSpec {
	out := o.child.spec
	out.Key, out.Update = o.key, cmp.Or(o.update, out.Update)
	return out
}

// said returns the object's error for people.
func (o *object) said() error {
	if o.hidden {
		return hidden(o.err)
	}
	return o.err
}

// ending reports whether the object is being deleted.
func (o *object) ending() bool { return o.live != nil && o.live.GetDeletionTimestamp() != nil }

// holders says which finalizers hold an object that is to go. Those of Kubernetes' own ways to delete say nothing to people.
func holders(live *unstructured.Unstructured) string {
	list := slices.DeleteFunc(live.GetFinalizers(), func(name string) bool {
		return name == metav1.FinalizerDeleteDependents || name == metav1.FinalizerOrphanDependents
	})
	if len(list) == 0 {
		return ""
	}
	return " (it has finalizers: " + listed(list, ", ") + ")"
}

// label names the object.
func (o *object) label() string {
	if o.live != nil {
		return labelOf(o.live)
	}
	if o.hidden {
		return o.called
	}
	namespace := o.place.namespace
	if _, without := errors.AsType[*dsl.ClusterScopedError](o.err); without {
		namespace = ""
	}
	return words(o.place.kind, namespace, o.place.name)
}

// label names a child of the configuration, or one of several, for people.
func (c *child) label(key string) string {
	if key == "" {
		return "child " + c.name
	}
	return fmt.Sprintf("child %s[%q]", c.name, key)
}

// labelOf names an existing object.
func labelOf(u *unstructured.Unstructured) string {
	return words(u.GetKind(), u.GetNamespace(), u.GetName())
}

func words(kind, namespace, name string) string {
	if namespace == "" {
		return kind + " " + name
	}
	return kind + " " + namespace + "/" + name
}
