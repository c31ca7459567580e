// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// handle answers a request for objects: with a tree, a metav1.Status or a stream.
func (s *Server) handle(ctx context.Context, r Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.Resource.GroupResource() {
	case reviews():
		return s.review(r)
	case introductions():
		return introduce(r)
	}
	t, err := s.find(r.Resource)
	if err != nil {
		return nil, err
	}
	if err := s.authorize(r); err != nil && !r.trusted {
		return nil, err
	}
	if r.Subresource != "" && (r.Subresource != "status" || !t.status) {
		return nil, &apierrors.StatusError{ErrStatus: notServed()}
	}
	switch r.Verb {
	case "list":
		return s.list(t, r)
	case "watch":
		return s.watch(ctx, t, r)
	}
	o, err := s.single(t, r)
	switch {
	case err != nil:
		return nil, err
	case o == nil:
		return metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}, nil
	}
	return present(t, r, o), nil
}

// single handles a request for one object and returns the object; nil if there is none to return.
func (s *Server) single(t *table, r Request) (*unstructured.Unstructured, error) {
	sent := &unstructured.Unstructured{Object: r.Body}
	old := t.get(types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
	found := old != nil
	switch r.Verb {
	case "create":
		return s.create(t, r, sent)
	case "deletecollection":
		return nil, s.clear(t, r)
	case "patch":
		if found || r.contentType == string(types.ApplyPatchType) {
			return s.patch(t, r, old)
		}
	}
	if !found {
		return nil, apierrors.NewNotFound(t.name(), r.Name)
	}
	switch r.Verb {
	case "get":
		return old, nil
	case "update":
		return s.update(t, r, old, sent)
	case "delete":
		return s.delete(t, old, preconditions(r.Body), graceIn(r.Body))
	}
	return nil, apierrors.NewMethodNotSupported(t.name(), r.Verb)
}

// present returns an object in the form that the client asks for.
func present(t *table, r Request, o *unstructured.Unstructured) map[string]any {
	if r.partial() {
		return map[string]any{
			"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": o.Object["metadata"],
		}
	}
	out := maps.Clone(o.Object)
	out["apiVersion"] = t.apiVersion(r.Resource.Version)
	return out
}

// preconditions reads the preconditions of a deletion.
func preconditions(options map[string]any) metav1.Preconditions {
	var out metav1.Preconditions
	if uid, found, _ := unstructured.NestedString(options, "preconditions", "uid"); found {
		out.UID = (*types.UID)(&uid)
	}
	if version, found, _ := unstructured.NestedString(options, "preconditions", "resourceVersion"); found {
		out.ResourceVersion = &version
	}
	return out
}

func (s *Server) clear(t *table, r Request) error {
	sel, err := selectorOf(r)
	if err != nil {
		return err
	}
	var errs []error
	for _, o := range t.selected(r.Namespace, sel) {
		_, err := s.delete(t, o, metav1.Preconditions{}, nil)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
