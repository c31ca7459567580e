// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// ErrMissing is wrapped by the errors of evaluations that need a missing value: a key, an element, an optional
// value.
var ErrMissing = errors.New("something is missing")

// ErrMissingRelated is wrapped in the place of [ErrMissing], which it wraps, if what is missing is a related object, a field of one
// that is chosen by its name, or the element of a list of related objects that is empty.
var ErrMissingRelated = fmt.Errorf("%w of related objects", ErrMissing)

// ErrMissingOwn is an [ErrMissing] about a field of the object itself outside of its status, or about a parameter. It is
// not waited for, because only an author adds the value.
var ErrMissingOwn = fmt.Errorf("%w of the object itself", ErrMissing)

// statusOfSelf stands for self if the value is missing in its status, where the operator or another controller may add
// it.
const statusOfSelf = Self + ".status"

// noSuchKey is the beginning of CEL's errors about a missing field.
const noSuchKey = "no such key: "

// missing names the missing value with its whole path. CEL names only the last step, so it follows the paths in the
// expression. From is the variable of the missing one, or self.status; the error then names only what the expression itself contains.
// It is empty if that is not known.
func (p *Program) missing(err error, a *activation) (from string, reason error) {
	key, found := strings.CutPrefix(err.Error(), noSuchKey)
	if !found {
		if name := p.emptied(err, a); name != "" {
			return Related, errors.New(written(Related, []string{name}) + " is empty")
		}
		return "", err
	}
	for _, root := range slices.Sorted(maps.Keys(p.uses)) {
		r := &reader{variable: root}
		r.visit(ast.NavigateAST(p.ast))
		value, known := a.ResolveName(root)
		if !known {
			continue
		}
		for _, way := range r.ways {
			if at := lost(value, way); at >= 0 && way[at] == key {
				reason = errors.New(a.notSet(root, value, way[:at+1]))
				if root == Self && way[0] == "status" {
					root = statusOfSelf
				}
				return root, reason
			}
		}
	}
	return "", err
}

// emptied returns the name of the relation that explains an index out of bounds: the expression takes one of its objects by an
// index, and it selects no objects. Another error gives an empty name.
func (p *Program) emptied(err error, a *activation) (name string) {
	if !p.Uses(Related) || !strings.Contains(err.Error(), "index out of bounds") {
		return ""
	}
	value, _ := a.ResolveName(Related)
	all, _ := value.(map[string]any)
	r := &reader{variable: Related}
	ast.PreOrderVisit(p.ast.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if of, _, how := computed(e); how == operators.Index {
			at, rooted := r.path(of)
			if !rooted || len(at.path) != 1 {
				return
			}
			if list, is := all[at.path[0]].([]any); is && len(list) == 0 {
				name = at.path[0]
			}
		}
	}))
	return name
}

// lost returns the first step of a path that does not exist; -1 if all exist or that is not known.
func lost(value any, way []string) int {
	for i, step := range way {
		if of, is := value.(ref.Val); is { // of a let
			value = of.Value()
		}
		tree, isMap := value.(map[string]any)
		if !isMap {
			return -1
		}
		if value, isMap = tree[step]; !isMap {
			return i
		}
	}
	return -1
}

// notSet is the message that the last step of a variable's path is missing. For a child or a related object it
// names the object.
func (a *activation) notSet(root string, value any, way []string) string {
	if root != Children && root != Related && root != Current || len(way) < 2 {
		return written(root, way) + " is not set"
	}
	object, _ := value.(map[string]any)[way[0]].(map[string]any)
	if len(object) == 0 {
		return written(root, way[:1]) + a.absent(root, way[0]) + " is not there"
	}
	u := unstructured.Unstructured{Object: object}
	if u.GetKind() == "" { // children by key
		return written(root, way) + " is not set"
	}
	if root == Related && a.hidden(way[0]) {
		return written(root, way) + " is not set"
	}
	name := strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/")
	return fmt.Sprintf("%s (%s %s): %s is not set", written(root, way[:1]), u.GetKind(), name, strings.TrimPrefix(written("", way[1:]), "."))
}

// hidden reports whether the names of a relation's objects are not shown.
func (a *activation) hidden(relation string) bool {
	return slices.ContainsFunc(a.scope.Subject.Related.Relations(), func(r dsl.Relation) bool { return r.Name == relation && r.Hidden })
}

// absent names the missing object of a relation, in brackets; empty if it is not known.
func (a *activation) absent(root, relation string) string {
	if root != Related || a.scope.Subject.Related == nil {
		return ""
	}
	if name := a.scope.Subject.Related.Absent(relation); name != "" {
		return " (" + name + ")"
	}
	return ""
}

// written formats a path as in an expression.
func written(root string, way []string) string {
	for _, step := range way {
		if dsl.IsIdentifier(step) {
			root += "." + step
		} else {
			root += "['" + step + "']"
		}
	}
	return root
}
