// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Server is an API server. Its methods may be called by any number of goroutines.
type Server struct {
	mu      sync.Mutex
	owners  ownership
	version int64 // of the last write; all resources share it
	uids    int
	tables  map[schema.GroupResource]*table
	broken  map[string]bool // API groups that do not answer
	denied  []Rule
	lagging *discoveryv2.APIGroupDiscoveryList // what it goes on saying that it serves, nil when it says what is so
}

// New returns a server with the usual built-in resources and the namespaces default and
// kube-system.
func New() *Server {
	s := &Server{tables: map[schema.GroupResource]*table{}, broken: map[string]bool{}}
	for _, r := range builtins() {
		s.tables[schema.GroupResource{Group: r.group, Resource: r.plural}] = newTable(r)
	}
	for _, name := range []string{"default", "kube-system"} {
		namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		namespace.SetName(name)
		if _, err := s.create(s.tables[namespaces()], Request{}, namespace); err != nil {
			panic("apiserver: " + err.Error()) // not reached: the names are free
		}
	}
	return s
}

// Break makes an API group answer nothing but 503, as an aggregated one does whose server is
// down. Mend ends that.
func (s *Server) Break(group string) { s.setBroken(group, true) }

// Mend is the opposite of Break.
func (s *Server) Mend(group string) { s.setBroken(group, false) }

func (s *Server) setBroken(group string, broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken[group] = broken
}

// Hold keeps watch events of the resources back until Release. New watches list what is there, and
// get what comes later at Release too. Lists are not affected.
func (s *Server) Hold(resources ...schema.GroupResource) {
	s.each(resources, func(t *table) { t.hold(true) })
}

// Release lets go what Hold kept back.
func (s *Server) Release(resources ...schema.GroupResource) {
	s.each(resources, func(t *table) { t.hold(false) })
}

// Cut ends the watches of the resources. A client that resumes misses nothing.
func (s *Server) Cut(resources ...schema.GroupResource) {
	s.each(resources, func(t *table) { t.cut() })
}

// Expire ends the watches of the resources and forgets what happened: a client has to list again,
// and events that were held are lost.
func (s *Server) Expire(resources ...schema.GroupResource) {
	s.each(resources, func(t *table) { t.expire(s.version) })
}

// Snapshot remembers all objects and the version, as a backup of etcd does. What it returns puts them
// back: versions begin anew from there, and watches end as expired.
func (s *Server) Snapshot() (restore func()) {
	back := s.backup()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		back()
		for _, t := range s.tables {
			t.expire(s.version)
		}
	}
}

// Backup is Snapshot with a restore that leaves watches open. A watch that is resumed from a version which the server has
// yet to reach is silent until then.
func (s *Server) Backup() (restore func()) {
	back := s.backup()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		back()
	}
}

// backup is Backup for callers that hold the lock when they restore.
func (s *Server) backup() (restoreLocked func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	version, rows := s.version, map[*table]map[types.NamespacedName]*unstructured.Unstructured{}
	for _, t := range s.tables {
		rows[t] = maps.Clone(t.rows)
	}
	return func() {
		s.version = version
		for _, t := range s.tables {
			t.rows = maps.Clone(rows[t])
			if t.rows == nil {
				t.rows = map[types.NamespacedName]*unstructured.Unstructured{}
			}
			t.history = slices.DeleteFunc(slices.Clone(t.history), func(c change) bool { return c.version > version })
		}
	}
}

// Withdraw stops serving the resources, whose objects stay, and ends their watches.
func (s *Server) Withdraw(resources ...schema.GroupResource) {
	s.each(resources, func(t *table) {
		t.withdrawn = true
		t.cut()
	})
}

// Restore is the opposite of Withdraw.
func (s *Server) Restore(resources ...schema.GroupResource) {
	s.each(resources, func(t *table) { t.withdrawn = false })
}

// Omit makes lists of the resource, and watches that begin with one, not show an object, or show it
// again. It is there all the same.
func (s *Server) Omit(resource schema.GroupResource, namespace, name string, omit bool) {
	s.each([]schema.GroupResource{resource}, func(t *table) {
		t.omitted[types.NamespacedName{Namespace: namespace, Name: name}] = omit
	})
}

// Rewrite makes the server change what is written to a resource, status included, before it is stored.
// What it returns ends that.
func (s *Server) Rewrite(resource schema.GroupResource, change func(*unstructured.Unstructured)) (end func()) {
	r := &rewriting{change}
	s.each([]schema.GroupResource{resource}, func(t *table) { t.rewrites = append(t.rewrites, r) })
	return func() {
		s.each([]schema.GroupResource{resource}, func(t *table) {
			t.rewrites = slices.DeleteFunc(t.rewrites, func(each *rewriting) bool { return each == r })
		})
	}
}

// Load stores an object as it is, with a new version.
func (s *Server) Load(resource schema.GroupResource, o *unstructured.Unstructured) {
	s.each([]schema.GroupResource{resource}, func(t *table) { s.commit(t, added, o) })
}

// each calls do for the resources that are served, for all when none are named.
func (s *Server) each(resources []schema.GroupResource, do func(*table)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, t := range s.tables {
		if len(resources) == 0 || slices.Contains(resources, name) {
			do(t)
		}
	}
}

// commit makes a write last: it gets a version, and the watches get to know it. Of a removal next
// is the object as it was. The result is what is stored.
func (s *Server) commit(t *table, what eventType, next *unstructured.Unstructured) *unstructured.Unstructured {
	s.version++
	next.SetResourceVersion(strconv.FormatInt(s.version, 10))
	key := keyOf(next)
	c := change{version: s.version, what: what, object: next, before: t.rows[key]}
	if what == deleted {
		delete(t.rows, key)
	} else {
		t.rows[key] = next
	}
	t.note(c)
	if what == deleted {
		s.sweepLater()
	}
	return next
}

// uid returns a uid that was not used before.
func (s *Server) uid() types.UID {
	s.uids++
	return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", s.uids))
}

// find returns the table of a resource in a version that is served.
func (s *Server) find(gvr schema.GroupVersionResource) (*table, error) {
	t, found := s.tables[gvr.GroupResource()]
	switch {
	case s.broken[gvr.Group]:
		return nil, apierrors.NewServiceUnavailable("service unavailable")
	case !found || t.withdrawn || !slices.Contains(t.versions, gvr.Version):
		return nil, &apierrors.StatusError{ErrStatus: notServed()}
	}
	return t, nil
}

// sorted returns the tables in a fixed order.
func (s *Server) sorted() []*table {
	var out []*table
	for _, t := range s.tables {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *table) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.plural, b.plural))
	})
	return out
}

func keyOf(u *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
}
