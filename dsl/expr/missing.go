// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ErrMissing is wrapped by the errors of evaluations that came upon something that is not there: a
// key, an element, an optional value.
var ErrMissing = errors.New("something is missing")

// noSuchKey is how CEL's errors begin that are about a field.
const noSuchKey = "no such key: "

// identifier is a field that is written behind a dot.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// missing says what is not there, with the whole way to it. CEL names the last step alone; the way is found by
// going all those that are written in the expression. Found is whether it was: then what it says is written there, too.
func (p *Program) missing(err error, a *activation) (told error, found bool) {
	key, found := strings.CutPrefix(err.Error(), noSuchKey)
	if !found {
		return err, false
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
				return errors.New(a.notSet(root, value, way[:at+1])), true
			}
		}
	}
	return err, false
}

// lost returns which step of a way leads to nothing, -1 when all lead to something or that cannot be told.
func lost(value any, way []string) int {
	for i, step := range way {
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

// notSet says of a way from a variable that its last step leads to nothing. Of a child or a related object it says
// which one it is.
func (a *activation) notSet(root string, value any, way []string) string {
	if root != Children && root != Related || len(way) < 2 {
		return written(root, way) + " is not set"
	}
	object, _ := value.(map[string]any)[way[0]].(map[string]any)
	if len(object) == 0 {
		return written(root, way[:1]) + a.absent(root, way[0]) + " is not there"
	}
	u := unstructured.Unstructured{Object: object}
	name := strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/")
	return fmt.Sprintf("%s (%s %s): %s is not set", written(root, way[:1]), u.GetKind(), name, strings.TrimPrefix(written("", way[1:]), "."))
}

// absent names the object that a relation looks for, in brackets; empty where that is not known.
func (a *activation) absent(root, relation string) string {
	if root != Related || a.scope.Subject.Related == nil {
		return ""
	}
	if name := a.scope.Subject.Related.Absent(relation); name != "" {
		return " (" + name + ")"
	}
	return ""
}

// written writes a way as an expression has it.
func written(root string, way []string) string {
	for _, step := range way {
		if identifier.MatchString(step) {
			root += "." + step
		} else {
			root += "['" + step + "']"
		}
	}
	return root
}
