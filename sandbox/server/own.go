// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// OwnWrite is a write that no client has asked for: the garbage collector's, or the deletion of what is in a namespace
// or of a CRD.
type OwnWrite struct {
	Resource        schema.GroupResource
	Namespace, Name string
	// Before and After are the object before and after the write; After is nil if it is gone. They must not be changed.
	Before, After map[string]any
}

// byItself runs a function whose writes are own ones.
func (s *Server) byItself(do func()) {
	was := s.itself
	s.itself = true
	do()
	s.itself = was
}

// noteOwn notes a write that is about to be stored, if it is an own one, and returns a function for the time when it is stored.
func (s *Server) noteOwn(t *table, o *unstructured.Unstructured) (stored func()) {
	if !s.itself || s.ownWrites == nil {
		return func() {}
	}
	key := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	tree := func() map[string]any {
		if found := t.get(key); found != nil {
			return found.Object
		}
		return nil
	}
	w := OwnWrite{Resource: t.name(), Namespace: key.Namespace, Name: key.Name, Before: tree()}
	return func() {
		w.After = tree()
		s.unseen = append(s.unseen, w)
	}
}

// unlock releases the lock, and then shows the own writes that were made.
func (s *Server) unlock() {
	own := s.unseen
	s.unseen = nil
	s.mu.Unlock()
	for _, w := range own {
		s.ownWrites(w)
	}
}
