// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Live returns the indexes for code that runs beside reconciles. Each call sees the current values, and changes of them
// wake nothing. They may be used by any number of goroutines.
func (s *Set) Live() dsl.Indexes { return live{s} }

type live struct{ set *Set }

// names returns the names of the indexes, in order.
func (s *Set) names() (out []string) {
	for _, x := range s.all {
		out = append(out, x.Name)
	}
	return out
}

// named returns the index with a name.
func (s *Set) named(name string) (*one, error) {
	for _, x := range s.all {
		if x.Name == name {
			return x, nil
		}
	}
	return nil, errNoIndex(name)
}

// errNoIndex returns the error for an unknown index.
func errNoIndex(name string) error { return dsl.Permanent(fmt.Errorf("there is no index %q", name)) }

// Names returns the names of the indexes.
func (l live) Names() []string { return l.set.names() }

// Open returns an index. See [dsl.Indexes].
func (l live) Open(name string) (dsl.IndexReader, error) {
	x, err := l.set.named(name)
	if err == nil {
		err = x.unread()
	}
	if err != nil {
		return nil, err
	}
	return current{x}, nil
}

// current implements [dsl.IndexReader] for the current values.
type current struct{ *one }

// Get returns the values under a key.
func (c current) Get(key any) ([]string, error) {
	k, err := keyOf(key)
	if err != nil {
		return nil, err
	}
	values, _ := c.values.Get(k)
	return slices.Clone(values), nil
}

// Has reports whether there are values under a key.
func (c current) Has(key any) (bool, error) {
	values, err := c.Get(key)
	return len(values) > 0, err
}

// Keys returns the keys that have values.
func (c current) Keys() []any {
	keys, _ := c.values.Keys()
	out := make([]any, len(keys))
	for i, key := range keys {
		out[i] = key.Value()
	}
	return out
}

// Unwatched are the indexes before anything is watched.
type Unwatched struct{}

// Names returns nothing.
func (Unwatched) Names() []string { return nil }

// Open returns an error.
func (Unwatched) Open(string) (dsl.IndexReader, error) {
	return nil, dsl.Permanent(fmt.Errorf("nothing is watched yet, so indexes have nothing: read them in a handler, a probe or a cleanup"))
}
