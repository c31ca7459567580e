// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"errors"
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/handwerk-dev/handwerk/dsl"
)

// indexSet are the indexes that a subject can read, by name. Each is opened when it is looked for: one that cannot be
// seen whole is an error there, whatever is asked of it.
type indexSet struct {
	traits.Mapper // of the names
	from          dsl.Indexes
	opened        map[string]ref.Val
}

// indexes are those of a subject.
func indexes(s *dsl.Subject) (any, error) {
	if s.Indexes == nil {
		return nil, errors.New("there are no indexes here")
	}
	names := map[string]any{}
	for _, name := range s.Indexes.Names() {
		names[name] = nil
	}
	return &indexSet{plainMapper(names), s.Indexes, map[string]ref.Val{}}, nil
}

func plainMapper(of map[string]any) traits.Mapper {
	return types.NewStringInterfaceMap(types.DefaultTypeAdapter, of)
}

// Find returns an index.
func (s *indexSet) Find(of ref.Val) (ref.Val, bool) {
	name, is := of.(types.String)
	if !is || s.Contains(of) != types.True {
		return nil, false
	}
	if known := s.opened[string(name)]; known != nil {
		return known, true
	}
	reader, err := s.from.Open(string(name))
	if err != nil {
		return types.WrapErr(fmt.Errorf("reading indexes.%s: %w", name, err)), false
	}
	out := &indexMap{Mapper: plainMapper(map[string]any{}), name: string(name), reader: reader, found: map[any]ref.Val{}}
	s.opened[string(name)] = out
	return out, true
}

// Get is Find of an index that there is.
func (s *indexSet) Get(of ref.Val) ref.Val {
	out, found := s.Find(of)
	if !found && out == nil {
		return types.NewErr("there is no index %v", of)
	}
	return out
}

// Value is the set itself: it is no plain map.
func (s *indexSet) Value() any { return s }

// indexMap is an index as a map of CEL: its keys are those that have values, and under any key there is a list. So
// what has no values gives an empty list, and not an error. CEL evaluates in one goroutine.
type indexMap struct {
	traits.Mapper // an empty one
	name          string
	reader        dsl.IndexReader
	// found are the values that were decoded, by key: a macro asks for each element.
	found map[any]ref.Val
}

// fail makes an error a value of CEL.
func (x *indexMap) fail(err error) ref.Val {
	return types.WrapErr(fmt.Errorf("reading indexes.%s: %w", x.name, err))
}

// key is a key as the index knows it.
func (x *indexMap) key(of ref.Val) (any, error) {
	key, err := plainScalar(of)
	if err == nil && key == nil {
		err = errors.New("a key is text, a number or true or false, found null")
	}
	return key, err
}

// Find returns the list of what is under a key, which may be empty; there always is one.
func (x *indexMap) Find(of ref.Val) (ref.Val, bool) {
	if types.IsUnknownOrError(of) {
		return of, false
	}
	key, err := x.key(of)
	if err != nil {
		return x.fail(err), false
	}
	list, known := x.found[key]
	if !known {
		if list, err = x.read(key); err != nil {
			return x.fail(err), false
		}
		x.found[key] = list
	}
	return list, true
}

func (x *indexMap) read(key any) (ref.Val, error) {
	texts, err := x.reader.Get(key)
	if err != nil {
		return nil, err
	}
	values := make([]any, len(texts))
	for i, text := range texts {
		if err := utiljson.Unmarshal([]byte(text), &values[i]); err != nil {
			return nil, err
		}
	}
	return types.DefaultTypeAdapter.NativeToValue(values), nil
}

// Get is Find.
func (x *indexMap) Get(of ref.Val) ref.Val {
	out, _ := x.Find(of)
	return out
}

// Contains tells whether there are values under a key.
func (x *indexMap) Contains(of ref.Val) ref.Val {
	if types.IsUnknownOrError(of) {
		return of
	}
	key, err := x.key(of)
	if err != nil {
		return x.fail(err)
	}
	has, err := x.reader.Has(key)
	if err != nil {
		return x.fail(err)
	}
	return types.Bool(has)
}

// Iterator goes over the keys that have values, in their order.
func (x *indexMap) Iterator() traits.Iterator {
	return types.DefaultTypeAdapter.NativeToValue(x.reader.Keys()).(traits.Lister).Iterator()
}

// Size tells how many keys have values.
func (x *indexMap) Size() ref.Val { return types.Int(len(x.reader.Keys())) }

// Equal is for one index and itself: there is nothing else to compare it with.
func (x *indexMap) Equal(other ref.Val) ref.Val { return types.Bool(other == ref.Val(x)) }

// Value is the index itself: it is no plain map.
func (x *indexMap) Value() any { return x }
