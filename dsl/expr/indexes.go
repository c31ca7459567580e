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

// indexSet are the indexes that a subject can read, by name. Each is opened when it is used: if its resource cannot
// be read completely, every use of it is an error.
type indexSet struct {
	traits.Mapper // a map of the names
	from          dsl.Indexes
	opened        map[string]ref.Val
}

// indexes returns the indexes of a subject.
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

// Get returns an index that exists.
func (s *indexSet) Get(of ref.Val) ref.Val {
	out, found := s.Find(of)
	if !found && out == nil {
		return types.NewErr("there is no index %v", of)
	}
	return out
}

// Value returns the set itself: it is not a plain map.
func (s *indexSet) Value() any { return s }

// indexMap is an index as a map of CEL. Its keys are those that have values. Every key has a list, so a key without
// values gives an empty list, and not an error. CEL evaluates in one goroutine.
type indexMap struct {
	traits.Mapper // an empty map
	name          string
	reader        dsl.IndexReader
	// found are the decoded values by key, because macros read them for each element.
	found map[any]ref.Val
}

// fail converts an error to a value of CEL.
func (x *indexMap) fail(err error) ref.Val {
	return types.WrapErr(fmt.Errorf("reading indexes.%s: %w", x.name, err))
}

// key converts a key to a key of the index.
func (x *indexMap) key(of ref.Val) (any, error) {
	key, err := plainScalar(of)
	if err == nil && key == nil {
		err = errors.New("a key is text, a number or true or false, found null")
	}
	return key, err
}

// Find returns the list of values under a key, which may be empty. It is always found.
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

// Contains reports whether a key has values.
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

// Iterator iterates over the keys that have values, in their order.
func (x *indexMap) Iterator() traits.Iterator {
	return types.DefaultTypeAdapter.NativeToValue(x.reader.Keys()).(traits.Lister).Iterator()
}

// Size returns how many keys have values.
func (x *indexMap) Size() ref.Val { return types.Int(len(x.reader.Keys())) }

// Equal reports whether both are the same index; indexes are equal to nothing else.
func (x *indexMap) Equal(other ref.Val) ref.Val { return types.Bool(other == ref.Val(x)) }

// Value returns the index itself: it is not a plain map.
func (x *indexMap) Value() any { return x }
