// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/guard"
	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/decide/breaker"
	"github.com/handwerk-dev/handwerk/engine/decide/filter"
)

// OnEvent handles an event of an indexed object. It updates the index from the cache, and wakes the owners that have
// read changed keys.
func (x *one) OnEvent(ev watch.Event) {
	x.filling.Lock() // an older state must not replace a newer one
	defer x.filling.Unlock()
	of := types.NamespacedName{Namespace: ev.Key.Namespace, Name: ev.Key.Name}
	o, found := x.feed.Get(ev.Key)
	if !found {
		x.look(x.values.Put(of, nil), breaker.Version{UID: ev.UID})
		x.left.recovered(x, of)
		return
	}
	entries, err := x.entries(o)
	x.look(x.values.Put(of, entries), breaker.Version{UID: o.GetUID(), Text: o.GetResourceVersion()}) // no entries after an error
	if err != nil {
		x.left.failed(x, of, err)
	} else {
		x.left.recovered(x, of)
	}
}

// OnEvent must be called with each event of a resource's own objects before their handlers may run. An index over the same
// cache then has the objects, too.
func (s *Set) OnEvent(by *source.Source, ev watch.Event) {
	for _, x := range s.all {
		mine, theirs := x.feed.Informer(ev.Key.Namespace), by.Informer(ev.Key.Namespace)
		if mine != nil && theirs != nil && mine.Source() == theirs.Source() {
			x.OnEvent(ev)
		}
	}
}

// The limits of an index for one object: the number of entries, and the bytes of their values, counted for each key. An
// object of a megabyte has room for more than a hundred thousand keys.
const (
	mostEntries = 10_000
	mostValues  = 16 << 20
)

// entries returns the index entries of an object.
func (x *one) entries(o *cached.Object) (out []Entry, err error) {
	tree := o.Tree()
	if tree == nil {
		return nil, errors.New("the object cannot be read")
	}
	given, err := x.ask(tree)
	if err != nil {
		return nil, err
	}
	if len(given) > mostEntries {
		return nil, fmt.Errorf("it has %d keys, and the most is %d", len(given), mostEntries)
	}
	room := mostValues
	for _, entry := range given {
		if text, garbled := plain.Garbled(entry.Key); garbled {
			_, err := keyOf(text) // returns the error
			return nil, err
		}
		key, err := plain.Value(entry.Key)
		if err != nil {
			return nil, fmt.Errorf("reading key: %w", err)
		}
		value, err := plain.Value(entry.Value)
		if err != nil {
			return nil, fmt.Errorf("reading value: %w", err)
		}
		text, err := plain.AppendJSON(nil, value)
		if err != nil {
			return nil, fmt.Errorf("reading value: %w", err)
		}
		if room -= len(text); room < 0 {
			return nil, fmt.Errorf("the values of its %d keys take more than %d MiB", len(given), mostValues>>20)
		}
		one := Entry{Value: string(text)}
		if one.Key, err = keyOf(key); err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// ask evaluates the index's filters and its function, and turns a panic into an error.
func (x *one) ask(o *unstructured.Unstructured) (out []dsl.Entry, err error) {
	if !filter.Matches(&dsl.Handler{Labels: x.Labels, Annotations: x.Annotations}, o) {
		return nil, nil
	}
	if broke := guard.Call("index function", func() { out, err = x.unguarded(o) }); broke != nil {
		return nil, broke
	}
	return out, err
}

// unguarded is ask without the guard.
func (x *one) unguarded(o *unstructured.Unstructured) ([]dsl.Entry, error) {
	if x.When != nil {
		holds, err := x.When(&dsl.Subject{Object: o, Prefix: x.Prefix(), Now: time.Now(), Log: x.log, Secrets: dsl.Secrets{Read: x.OfSecrets()}})
		if err != nil || !holds {
			return nil, err
		}
	}
	return x.Entries(o)
}

// leftOut has the objects that an index leaves out because its function failed. It logs the first one, and when all are
// indexed again. Its zero value is ready to use.
type leftOut struct {
	mu   sync.Mutex
	objs map[types.NamespacedName]error
}

// namedMost bounds how many left-out objects are named.
const namedMost = 3

func (l *leftOut) failed(x *one, of types.NamespacedName, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	const line = "object cannot be indexed; the index leaves it out until it changes"
	log := x.log.WithValues("namespace", of.Namespace, "name", of.Name)
	if len(l.objs) == 0 {
		l.objs = map[types.NamespacedName]error{}
		log.Error(err, line)
	} else {
		log.V(1).Info(line, "error", err.Error())
	}
	l.objs[of] = err
}

// recovered records that an object is not left out.
func (l *leftOut) recovered(x *one, of types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, left := l.objs[of]; !left {
		return
	}
	if delete(l.objs, of); len(l.objs) == 0 {
		x.log.Info("all objects are indexed again")
	}
}

func (l *leftOut) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.objs)
}

// String names the left-out objects for people; empty if there are none.
func (l *leftOut) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, of := range slices.SortedFunc(maps.Keys(l.objs), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }) {
		if len(out) == namedMost {
			out = append(out, fmt.Sprintf("and %d more", len(l.objs)-namedMost))
			break
		}
		out = append(out, strings.TrimPrefix(of.String(), "/")+": "+l.objs[of].Error())
	}
	if len(out) == 0 {
		return ""
	}
	return "objects are left out: " + strings.Join(out, "; ")
}
