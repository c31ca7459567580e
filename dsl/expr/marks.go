// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
)

// Metadata has marks: bookkeeping of the operator, of other tools and of the API server. On a copy they would mislead their owners, and a copy
// would change whenever they do. So maps with marks are given to expressions as values of CEL that have all keys for a
// lookup, and none of the marks for everything else: loops, sizes, comparisons, and results.

// copying returns the variables of which an expression may copy metadata, labels, annotations or finalizers as a whole. Others
// are given to it as they are, which costs nothing.
func copying(tree *ast.AST) (out map[string]bool) {
	for _, name := range tree.ReferenceMap() {
		if name.Name == "" || out[name.Name] {
			continue
		}
		r := &reader{variable: name.Name}
		r.visit(ast.NavigateAST(tree))
		if slices.ContainsFunc(r.paths, func(p dsl.Path) bool { return hasMarks(name.Name, p) }) {
			if out == nil {
				out = map[string]bool{}
			}
			out[name.Name] = true
		}
	}
	return out
}

// hasMarks reports whether the value at a path of a variable may have marks, so that a copy must leave them out.
func hasMarks(variable string, path dsl.Path) bool {
	switch variable {
	case Old, Diff, Cause, Event, Params, Now, Indexes, Handlers:
		return false // none of them has marks: they are no metadata, essences, or results of expressions
	case Children, Related, Current:
		if len(path) > 0 {
			path = path[1:] // of one object, or a list
		}
	}
	switch len(path) {
	case 0:
		return true
	case 1:
		return path[0] == "metadata"
	case 2:
		return path[0] == "metadata" && slices.Contains([]string{"labels", "annotations", "finalizers"}, path[1])
	}
	return false
}

// withoutMarks returns an object, a list of objects, or, if it is named, a map of these by their names. The prefix is that of
// the operator's own marks. A value that is neither is returned as it is.
func withoutMarks(prefix string, v any, named bool) any {
	switch value := v.(type) {
	case []any:
		out := make([]any, len(value))
		for i, element := range value {
			out[i] = withoutMarks(prefix, element, false)
		}
		return out
	case map[string]any:
		if named {
			out := make(map[string]any, len(value))
			for name, element := range value {
				out[name] = withoutMarks(prefix, element, false)
			}
			return out
		}
		metadata, is := value["metadata"].(map[string]any)
		if !is {
			return value
		}
		out := maps.Clone(value)
		out["metadata"] = unmarkedMetadata(prefix, metadata)
		return out
	}
	return v
}

// serverFields are fields of metadata that the API server sets and that differ between copies. A digest of metadata that had
// them would never come to rest.
var serverFields = []string{"managedFields", "resourceVersion", "generation", "selfLink"}

// unmarkedMetadata returns the metadata of an object without marks. The fields that the server sets are hidden, too, and so are
// fields that have nothing but marks.
func unmarkedMetadata(prefix string, metadata map[string]any) any {
	hidden := slices.Clone(serverFields)
	own := func(key string) bool { return prefix != "" && strings.HasPrefix(key, prefix+"/") }
	out := maps.Clone(metadata)
	for field, is := range map[string]func(key, value string) bool{"labels": bookkeeping.IsLabel, "annotations": bookkeeping.Is} {
		of, isMap := metadata[field].(map[string]any)
		if !isMap {
			continue
		}
		out[field] = hiding(of, func(key string, value any) bool {
			text, _ := value.(string)
			return own(key) || is(key, text)
		})
		if visible, some := out[field].(*markedMap); some && visible.Size() == types.IntZero {
			hidden = append(hidden, field)
		}
	}
	if list, isList := metadata["finalizers"].([]any); isList {
		visible := slices.DeleteFunc(slices.Clone(list), func(name any) bool {
			text, _ := name.(string)
			return own(text) || bookkeeping.IsFinalizer(text)
		})
		if len(visible) == 0 {
			hidden = append(hidden, "finalizers")
		}
		out["finalizers"] = &markedList{types.DefaultTypeAdapter.NativeToValue(visible).(traits.Lister), types.DefaultTypeAdapter.NativeToValue(list).(traits.Lister)}
	}
	return hiding(out, func(key string, _ any) bool { return slices.Contains(hidden, key) })
}

// hiding returns a map that hides some keys. It is the map itself if there are none.
func hiding(all map[string]any, hides func(key string, value any) bool) any {
	for key, value := range all {
		if hides(key, value) {
			visible := maps.Clone(all)
			maps.DeleteFunc(visible, hides)
			return &markedMap{plainMapper(visible), plainMapper(all)}
		}
	}
	return all
}

// markedMap is a map some keys of which are found only by their names.
type markedMap struct {
	traits.Mapper // without the marks
	all           traits.Mapper
}

// Find returns the value of a key, which may be a mark.
func (m *markedMap) Find(key ref.Val) (ref.Val, bool) { return m.all.Find(key) }

// Get returns the value of a key, which may be a mark.
func (m *markedMap) Get(key ref.Val) ref.Val { return m.all.Get(key) }

// Contains reports whether there is the key, which may be a mark.
func (m *markedMap) Contains(key ref.Val) ref.Val { return m.all.Contains(key) }

// markedList is a list some elements of which are found only by their names.
type markedList struct {
	traits.Lister // without the marks
	all           traits.Lister
}

// Contains reports whether there is the element, which may be a mark.
func (l *markedList) Contains(element ref.Val) ref.Val { return l.all.Contains(element) }
