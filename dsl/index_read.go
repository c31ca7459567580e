// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"encoding/json"
	"errors"
	"fmt"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// Indexes gives handlers, filters and expressions what the operator's indexes have. Whatever they ask for in one pass,
// they see as it was when the first of them did. Authors use [Index].
type Indexes interface {
	// Names returns the names of the indexes, in declared order.
	Names() []string
	// Open returns an index. The error is permanent where there is none of the name; otherwise it says why the
	// resource that the index is over cannot be seen whole.
	Open(name string) (IndexReader, error)
}

// IndexReader reads one index in one pass.
type IndexReader interface {
	// Get returns the values under a key, each as JSON, ordered by the namespaces and names of the objects that they are
	// from. There may be none. The error says that nothing can be found under such a key.
	Get(key any) ([]string, error)
	// Has reports whether there are any.
	Has(key any) (bool, error)
	// Keys returns the keys that have values: false and true, numbers in order, texts in order.
	Keys() []any
}

// IndexKey is what keys of an index can be.
type IndexKey interface {
	~string | ~bool | ~int | ~int32 | ~int64 | ~float64
}

// Lookup is an index with the types of its keys and values.
type Lookup[K IndexKey, V any] struct {
	name   string
	reader IndexReader
}

// Index opens an index of the operator for a handler's request, a daemon's, or for the subject of a filter. Keys are of type K,
// and values are decoded into V as Kubernetes decodes: a field is found by its exact name. Into any they come as plain
// values.
//
// What is read is remembered for the handler: level-triggered handlers, and those with the cause [IndexChange], run
// again when it changes, also when there was nothing under the key. Others read without being woken, and so do
// handlers that run for their resource as a whole, daemons, probes and cleanups. Startups run before anything is watched, and
// can read none.
//
// The error is permanent where there is no such index; otherwise the resource that it is over cannot be seen whole,
// as for a missing right, and the handler that returns the error is tried again when it can.
func Index[K IndexKey, V any](r interface{ indexed() Indexes }, name string) (*Lookup[K, V], error) {
	all := r.indexed()
	if all == nil {
		return nil, Permanent(fmt.Errorf("reading index %s: there are no indexes here", name))
	}
	reader, err := all.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading index %s: %w", name, err)
	}
	return &Lookup[K, V]{name, reader}, nil
}

// indexed returns the indexes that the subject can read.
func (s *Subject) indexed() Indexes { return s.Indexes }

// Get returns the values under a key, ordered by the namespaces and names of the objects that they are from. There may
// be none. They are the caller's. The error says which value is none of V.
func (l *Lookup[K, V]) Get(key K) ([]V, error) {
	if text, garbled := plain.Garbled(key); garbled {
		return nil, fmt.Errorf("reading index %s: a key is text in UTF-8, found %q", l.name, text)
	}
	plainKey, err := decoded[any](key)
	if err != nil {
		return nil, fmt.Errorf("reading index %s: %w", l.name, err)
	}
	found, err := l.reader.Get(plainKey)
	if err != nil {
		return nil, fmt.Errorf("reading index %s: %w", l.name, err)
	}
	out := make([]V, len(found))
	for i, text := range found {
		if err := utiljson.Unmarshal([]byte(text), &out[i]); err != nil {
			return nil, fmt.Errorf("reading index %s: decoding value %d of %v: %w", l.name, i, key, err)
		}
	}
	return out, nil
}

// Keys returns the keys that have values: false and true, numbers in order, texts in order. The error says which key
// is none of K.
func (l *Lookup[K, V]) Keys() ([]K, error) {
	var out []K
	var wrong []error
	for _, key := range l.reader.Keys() {
		one, err := decoded[K](key)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("reading index %s: key %v: %w", l.name, key, err))
		}
		out = append(out, one)
	}
	return out, errors.Join(wrong...)
}

// Len returns how many keys have values.
func (l *Lookup[K, V]) Len() int { return len(l.reader.Keys()) }

// decoded turns a value into one of another type, by way of JSON.
func decoded[T any](value any) (out T, err error) {
	data, err := json.Marshal(value)
	if err == nil {
		err = utiljson.Unmarshal(data, &out)
	}
	return out, err
}
