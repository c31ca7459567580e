// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"errors"
	"slices"

	"github.com/handwerk-dev/handwerk/sandbox/server/webhook"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// errMoved is the error of a write whose object was written by others while a webhook was asked.
var errMoved = errors.New("the object has changed")

// mostTries is how often a write is tried whose object changes meanwhile.
const mostTries = 5

// isAdmitted reports whether webhooks are asked about a request. They are not about the server's own ones, nor about webhooks.
func isAdmitted(t *table, r Request) bool {
	return r.reply != nil && t.group != admissionv1.GroupName && slices.Contains([]string{"", "status"}, r.Subresource)
}

// ask asks the webhooks of one kind about a write, and returns the object as they have changed it. One of old and next may be nil.
// The server's lock is not held meanwhile, as webhooks may ask the server. If the stored object has changed then, the
// error is errMoved.
func (s *Server) ask(t *table, r Request, mutating bool, old, next *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if !isAdmitted(t, r) {
		return next, nil
	}
	hooks := s.admitted().validators
	if mutating {
		hooks = s.admitted().mutators
	}
	a := s.attributesOf(t, r, old, next)
	if !slices.ContainsFunc(hooks, func(h hook) bool { _, found := h.Matches(a); return found }) { // one that changes the labels comes later at most
		return next, nil
	}
	if next != nil {
		a.Object = runtime.DeepCopyJSON(next.Object)
	}
	asked := inquiry{Attributes: a, call: s.callOf(t, r, t.subjectOf(r, old, next)), reply: r.reply, view: t.viewIn(r.Resource.Version)}
	dry, itself := s.dry, s.itself
	s.dry, s.itself = false, false // others write meanwhile
	s.mu.Unlock()
	object, err := asked.review(hooks, s.network.dial)
	s.mu.Lock()
	s.dry, s.itself = dry, itself
	switch {
	case err != nil:
		return nil, err
	case s.tables[t.name()] != t, old != nil && !s.isStill(t, old):
		return nil, errMoved
	case !mutating || next == nil:
		return next, nil
	}
	return &unstructured.Unstructured{Object: object}, nil
}

// isStill reports whether an object is stored as it was.
func (s *Server) isStill(t *table, old *unstructured.Unstructured) bool {
	row := t.objects.Get(old.GetNamespace(), old.GetName())
	return row != nil && row.Tree().GetResourceVersion() == old.GetResourceVersion()
}

// attributesOf returns what webhooks are told of a write.
func (s *Server) attributesOf(t *table, r Request, old, next *unstructured.Unstructured) webhook.Attributes {
	out := webhook.Attributes{
		Operation: admissionv1.Update, Resource: r.Resource, Subresource: r.Subresource, Namespaced: t.namespaced, Namespace: r.Namespace,
		Kind: schema.GroupVersionKind{Group: t.group, Version: r.Resource.Version, Kind: t.kind}, DryRun: s.dry, User: userInfo(r.user), Name: r.Name,
		RequestVersion: r.Resource.Version, Versions: t.versions,
	}
	if old != nil {
		out.Old, out.Name = old.Object, old.GetName()
	} else {
		out.Operation = admissionv1.Create
	}
	if next != nil {
		out.Object, out.Name = next.Object, cmp.Or(next.GetName(), r.Name)
	} else {
		out.Operation = admissionv1.Delete
	}
	space := s.tables[namespaces()].get(types.NamespacedName{Name: r.Namespace})
	if t.name() == namespaces() {
		if space = next; space == nil {
			space = old
		}
		out.Namespace = out.Name
	}
	if space != nil {
		out.NamespaceLabels = space.GetLabels()
		if out.NamespaceLabels == nil {
			out.NamespaceLabels = map[string]string{}
		}
	}
	return out
}

// mutate lets admission plugins, policies and webhooks change an object. What webhooks return is brought into the form of its schema. If
// one has changed the object, the plugins see it again, and so do the policies that want that.
func (s *Server) mutate(t *table, r Request, old, next *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := s.complete(t, r, old, next); err != nil {
		return nil, err
	}
	first := &round{invoked: map[invocation]bool{}}
	shaped, err := s.reshape(t, r, old, next, first)
	if err != nil {
		return nil, err
	}
	out, err := s.ask(t, r, true, old, shaped)
	if err != nil || out == next {
		return out, err
	}
	if out != shaped {
		if err := s.decode(t, r, out, old); err != nil {
			return nil, err
		}
	}
	if err := s.complete(t, r, old, out); err != nil {
		return nil, err
	}
	return s.reshape(t, r, old, out, &round{again: true, invoked: first.invoked})
}

// askDeletion asks all webhooks about the deletion of an object, and returns it as it is then.
func (s *Server) askDeletion(t *table, r Request, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	for _, mutating := range []bool{true, false} {
		if !mutating && s.validates(t, r) {
			if err := s.validated(t, r, t.subjectOf(r, o, nil)); err != nil {
				return nil, err
			}
		}
		if _, err := s.ask(t, r, mutating, o, nil); err != nil && !errors.Is(err, errMoved) {
			return nil, err
		}
	}
	if now := t.get(keyOf(o)); now != nil {
		return now, nil
	}
	return nil, apierrors.NewNotFound(t.name(), o.GetName())
}

// retry does a write again when it meets another one while webhooks are asked.
func (s *Server) retry(t *table, r Request, write func(Request) (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	if !isAdmitted(t, r) || len(s.admitted().mutators)+len(s.admitted().validators) == 0 {
		return write(r)
	}
	for range mostTries {
		try := r
		try.Body = runtime.DeepCopyJSON(r.Body) // writes change it
		if o, err := write(try); !errors.Is(err, errMoved) {
			return o, err
		}
	}
	return nil, apierrors.NewConflict(t.name(), r.Name, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
}
