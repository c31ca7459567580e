// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package related

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/guard"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

// selection is the selection of a relation in a reconcile.
type selection struct {
	dsl.Selection
	// reader is the object's subscription; nil for none. Unchanged is true if the object had the same selection before.
	reader    *reader
	unchanged bool
	// err is the error of the selection. Unsynced is the reason why the objects cannot be read.
	err, unsynced error
	looked        bool
	objects       []*cached.Object
}

// choose calls a relation's Select, and turns a panic into an error.
func (s *selection) choose(what func(*dsl.Subject) (dsl.Selection, error), about *dsl.Subject) {
	if broke := guard.Call("relation", func() { s.Selection, s.err = what(about) }); broke != nil {
		s.err = broke
	}
}

// awaits ends the selection with an error of the relations that it depends on. Without an error it goes on.
func (s *selection) awaits(err, unsynced error) {
	s.err, s.unsynced, s.looked = err, unsynced, err != nil || unsynced != nil
}

// trees returns private copies of the selected objects of a relation.
func (s *selection) trees(name string) ([]*unstructured.Unstructured, error) {
	if err := cmp.Or(s.err, s.unsynced); err != nil {
		return nil, fmt.Errorf("reading related objects of %s: %w", name, err)
	}
	out := make([]*unstructured.Unstructured, 0, len(s.objects))
	for _, o := range s.objects {
		if tree := o.Tree(); tree != nil {
			out = append(out, tree)
		}
	}
	return out, nil
}

// selects reports whether an object is selected, or may be.
func (s *selection) selects(o *cached.Object) bool {
	found, _, err := s.among(o)
	return err != nil || len(found) > 0
}

// among returns the selected objects of a list. If Match fails, the selection is unknown: it returns the first object
// for which Match fails, with the error.
func (s *selection) among(all ...*cached.Object) (out []*cached.Object, about *cached.Object, err error) {
	out = slices.DeleteFunc(all, func(o *cached.Object) bool { return !s.mayBe(o) })
	if s.Match == nil {
		return out, nil, nil
	}
	holds := make([]bool, len(out))
	errs := guard.Each("relation", len(out), func(i int) (err error) {
		if tree := out[i].Tree(); tree != nil {
			holds[i], err = s.Match(tree)
		}
		return err
	})
	if len(errs) > 0 {
		first := slices.Min(slices.Collect(maps.Keys(errs)))
		return nil, out[first], errs[first]
	}
	i := -1
	return slices.DeleteFunc(out, func(*cached.Object) bool {
		i++
		return !holds[i]
	}), nil, nil
}

// mayBe reports whether an object is selected, apart from Match.
func (s *selection) mayBe(o *cached.Object) bool {
	return o != nil && (s.Namespace == "" || s.Namespace == o.GetNamespace()) &&
		(s.Names == nil || slices.Contains(s.Names, o.GetName())) &&
		(s.Labels == nil || s.Labels.Matches(labels.Set(o.GetLabels())))
}

// find reads the selected objects from the cache, by their names if that is possible. They are sorted. An error of Match
// names its object, unless names are hidden.
func (s *selection) find(f *source.Source, hidden bool) {
	namespaced := f.Resource().Namespaced
	for _, h := range f.Informers(s.Namespace) {
		namespace := cmp.Or(s.Namespace, h.Source().Namespace)
		if s.Names == nil || namespaced && namespace == "" {
			s.objects = append(s.objects, h.Objects()...)
			continue
		}
		for _, name := range slices.Compact(slices.Sorted(slices.Values(s.Names))) {
			if o, found := h.Object(cache.ObjectName{Namespace: namespace, Name: name}); found {
				s.objects = append(s.objects, o)
			}
		}
	}
	slices.SortFunc(s.objects, func(a, b *cached.Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	var about *cached.Object
	if s.objects, about, s.err = s.among(s.objects...); s.err != nil && !hidden {
		name := strings.TrimPrefix(about.GetNamespace()+"/"+about.GetName(), "/")
		s.err = fmt.Errorf("asking about %s %s: %w", f.Resource().Kind, name, s.err)
	}
}
