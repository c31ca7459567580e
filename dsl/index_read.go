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

// Indexes reads the operator's indexes for handlers, filters and expressions. All reads of one reconcile see the indexes
// as they were at the first read. Authors use [Index].
type Indexes interface {
	// Names returns the names of the indexes, in declared order.
	Names() []string
	// Open returns an index. The error is permanent when no index has the name. Otherwise it says why the index's
	// resource cannot be read completely.
	Open(name string) (IndexReader, error)
}

// IndexReader reads one index in one reconcile.
type IndexReader interface {
	// Get returns the values under a key as JSON, sorted by the namespaces and names of their objects. There may be
	// none. The error says that the key has an invalid type.
	Get(key any) ([]string, error)
	// Has reports whether the key has values.
	Has(key any) (bool, error)
	// Keys returns the keys that have values: first false and true, then numbers, then texts, each sorted.
	Keys() []any
}

// IndexKey is the constraint for keys of an index.
type IndexKey interface {
	~string | ~bool | ~int | ~int32 | ~int64 | ~float64
}

// Lookup is an index with typed keys and values.
type Lookup[K IndexKey, V any] struct {
	name   string
	reader IndexReader
}

// Index opens an index of the operator for the request of a handler or a daemon, or for the subject of a filter.
// Keys have type K. Values are decoded into V as Kubernetes decodes: names of fields must match exactly. Into any,
// they are decoded as plain values.
//
// The engine remembers which keys a handler has read, also keys without values. When their values change, it runs
// level-triggered handlers and those with the cause [IndexChange] again. Other handlers, handlers that run for
// their resource as a whole, daemons, probes and cleanups can read indexes, and do not run for changes. Startups
// cannot read indexes, because no resource is watched yet.
//
// The error is permanent when the index does not exist. Otherwise its resource cannot be read completely, as for a
// missing right; a handler that returns the error runs again when it can be.
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

// indexed returns the indexes of the subject.
func (s *Subject) indexed() Indexes { return s.Indexes }

// Get returns the values under a key, sorted by the namespaces and names of their objects. There may be none. The
// values are the caller's. The error names a value that does not decode into V.
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

// Keys returns the keys that have values: first false and true, then numbers, then texts, each sorted. The error
// names a key that is not of type K.
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

// decoded converts a value to another type by way of JSON.
func decoded[T any](value any) (out T, err error) {
	data, err := json.Marshal(value)
	if err == nil {
		err = utiljson.Unmarshal(data, &out)
	}
	return out, err
}
