// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"errors"
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Scope has the inputs of an evaluation. It is read-only.
type Scope struct {
	// Subject has self, old, diff, cause, event, now, children, related, indexes and handlers. Required, but for templates without
	// variables.
	Subject *dsl.Subject
	// Params are the handler's parameters.
	Params dsl.Params
	// Vars are the variables of [Compiler.With]; missing ones may be in the subject.
	Vars map[string]any
	// Anything names children to replace by a value that has every key. If the evaluation still returns
	// [ErrMissing], something else is missing. The value of such an evaluation must not be used.
	Anything []string
	// Lets keeps the values of lets from one evaluation to others with the same inputs. Nil means that each evaluation, and each
	// template, works them out once.
	Lets *LetValues
	// Room limits the result; several evaluations may share a room. Nil means mostRendered for each.
	Room *Room
	// Unready, when set, is called for each object for which ready() is false, in the order of evaluation.
	Unready func(dsl.Readiness)
	// Generated, when set, is called for each value that generate() makes.
	Generated func()
}

func (s Scope) room() *Room {
	if s.Room == nil {
		return NewRoom(mostRendered)
	}
	return s.Room
}

// OfSecret returns the scope for the template of a Secret. Its values become secret, so errors do not contain them.
func (s Scope) OfSecret() Scope {
	of := *s.Subject
	of.Secrets.Read = true
	s.Subject = &of
	return s
}

// secrets returns what expressions may read of Secrets.
func (s Scope) secrets() dsl.Secrets {
	if s.Subject == nil {
		return dsl.Secrets{}
	}
	return s.Subject.Secrets
}

// activation resolves the variables of an evaluation, each only when it is used. CEL reads the plain maps of a
// subject as they are: nothing is converted or copied.
type activation struct {
	scope   Scope
	program *Program
	// known are the children, related objects, indexes and lets that were used already, because macros use them for each
	// element. CEL evaluates in one goroutine.
	known map[string]any
	// copies are the variables of which the expression may copy metadata as a whole.
	copies map[string]bool
	// lets are the variables whose values are expressions. cost is what those that were used have cost.
	lets *Lets
	cost uint64
	// clock bounds loops in the expression and in lets; nil before the first one.
	clock *clock
	// unread are the errors of failed reads.
	unread []error
	// hear is called for objects that are not ready, with the part of the expression; may be nil.
	hear func(part int64, why dsl.Readiness)
}

// secretive reports whether errors may contain values of Secrets.
func (a *activation) secretive() bool { return a.scope.secrets().Read }

// readingFailed reports whether an evaluation failed because of a failed read. Such an error contains no values.
func (a *activation) readingFailed(err error) bool {
	return slices.ContainsFunc(a.unread, func(unread error) bool { return unread.Error() == err.Error() })
}

var _ cel.Activation = (*activation)(nil)

// ResolveName returns the value of a variable. A failed read is an error value, which ends the evaluation.
func (a *activation) ResolveName(name string) (any, bool) {
	s := a.scope.Subject
	switch name {
	case Self:
		return a.unmarked(name, treeOf(s.Object)), true
	case Old:
		if s.Old == nil {
			return nil, true
		}
		return s.Old, true
	case Diff:
		return changes(s.Diff), true
	case Cause:
		return string(s.Cause), true
	case Event:
		return string(s.Event), true
	case Params:
		return map[string]any(a.scope.Params), true
	case Now:
		return s.Now.UTC(), true // or its text would depend on where the process runs
	case Children:
		return a.once(name, func(s *dsl.Subject) (any, error) { return a.children(s) })
	case Related:
		return a.once(name, a.related)
	case Indexes:
		return a.once(name, indexes)
	case Handlers:
		return a.once(name, outcomes)
	case unready:
		return a.hear, a.hear != nil
	case generated:
		return a.scope.Generated, a.scope.Generated != nil
	}
	return a.added(name)
}

// added returns the value of a variable that the configuration has added.
func (a *activation) added(name string) (any, bool) {
	if l := a.lets.find(name); l != nil {
		return a.let(l), true
	}
	v, found := a.scope.Vars[name]
	if !found {
		v, found = a.scope.Subject.Vars[name]
	}
	return a.unmarked(name, v), found
}

// once reads a variable that is expensive to read.
func (a *activation) once(name string, read func(*dsl.Subject) (any, error)) (any, bool) {
	if v, found := a.known[name]; found {
		return v, true
	}
	v, err := read(a.scope.Subject)
	v = a.unmarked(name, v)
	if err != nil {
		a.unread = append(a.unread, err)
		v = types.WrapErr(err) // CEL's activations have no other way to fail
	}
	a.keep(name, v)
	return v, true
}

// keep keeps the value of a variable for the rest of the evaluation.
func (a *activation) keep(name string, v any) {
	if a.known == nil {
		a.known = map[string]any{}
	}
	a.known[name] = v
}

// unmarked returns the value of a variable. Where the expression may copy metadata as a whole, copies leave out bookkeeping.
func (a *activation) unmarked(name string, v any) any {
	if !a.copies[name] {
		return v
	}
	if known, found := a.known[name]; found {
		return known
	}
	prefix := ""
	if a.scope.Subject != nil {
		prefix = a.scope.Subject.Prefix
	}
	v = withoutMarks(prefix, v, name == Children || name == Related || name == Current)
	a.keep(name, v)
	return v
}

// Parent returns nil: there is no wider scope.
func (a *activation) Parent() cel.Activation { return nil }

// children returns the subject's children by name, with those in Anything replaced.
func (a *activation) children(s *dsl.Subject) (map[string]any, error) {
	if s.Children == nil {
		return nil, errors.New("there are no children here")
	}
	all, err := dsl.SharedReader(s.Children).All()
	if err != nil {
		return nil, fmt.Errorf("reading children: %w", err)
	}
	out := make(map[string]any, len(s.Made))
	for _, made := range s.Made {
		var found []*unstructured.Unstructured
		for _, child := range all {
			if child.Name == made.Name && (child.Key != "") == made.List {
				found = append(found, child.Object)
			}
		}
		out[made.Name] = shaped(found, !made.List)
	}
	for _, name := range a.scope.Anything {
		out[name] = anything{types.NewStringInterfaceMap(types.DefaultTypeAdapter, map[string]any{})}
	}
	return out, nil
}

// related returns the related objects that the expression reads by the names of their relations: those that it does not read may
// fail.
func (a *activation) related(s *dsl.Subject) (any, error) {
	if s.Related == nil {
		return nil, errors.New("there are no related objects here")
	}
	names, whole := a.program.Related()
	out := map[string]any{}
	for _, relation := range s.Related.Relations() {
		if !whole && !slices.Contains(names, relation.Name) {
			continue
		}
		found, err := s.Related.Get(relation.Name)
		if err != nil {
			return nil, err
		}
		out[relation.Name] = shaped(found, relation.One)
	}
	return out, nil
}

// outcomes returns what came of handlers, by their ids.
func outcomes(s *dsl.Subject) (any, error) {
	if s.Outcomes == nil {
		return nil, errors.New("there are no outcomes of handlers here")
	}
	out := make(map[string]any, len(s.Outcomes))
	for id, outcome := range s.Outcomes {
		out[id] = outcome.Fields()
	}
	return out, nil
}

// shaped returns the one object, or the list.
func shaped(objects []*unstructured.Unstructured, one bool) any {
	trees := make([]any, len(objects))
	for i, o := range objects {
		trees[i] = treeOf(o)
	}
	switch {
	case !one:
		return trees
	case len(trees) == 0:
		return map[string]any{}
	default:
		return trees[0]
	}
}

func treeOf(o *unstructured.Unstructured) map[string]any {
	if o == nil || o.Object == nil {
		return map[string]any{}
	}
	return o.Object
}

func changes(diff []dsl.Change) []any {
	out := make([]any, len(diff))
	for i, c := range diff {
		out[i] = map[string]any{
			"op": string(c.Op), "path": c.Path.String(), "old": c.Old, "new": c.New,
		}
	}
	return out
}

// anything is an empty map that has every key, with itself as the value. It replaces a value to find out whether an
// evaluation misses something else; see Scope.Anything.
type anything struct{ traits.Mapper }

// Find returns the map itself for every key.
func (a anything) Find(ref.Val) (ref.Val, bool) { return a, true }

// Get returns the map itself for every key.
func (a anything) Get(ref.Val) ref.Val { return a }

// Contains returns true.
func (anything) Contains(ref.Val) ref.Val { return types.True }

// Equal returns false.
func (anything) Equal(ref.Val) ref.Val { return types.False }
