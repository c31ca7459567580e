// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// errVersion is the error of an object with a version that is to be created; as an internal one, as of a real server.
var errVersion = internalError(errors.New("resourceVersion should not be set on objects to be created"))

// create stores a new object. It computes the managedFields unless the object comes from apply.
func (s *Server) create(t *table, r Request, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := s.decode(t, r, o, nil); err != nil {
		return nil, err
	}
	if o.GetName() == "" && o.GetGenerateName() != "" {
		o.SetName(s.generated(o.GetGenerateName()))
	}
	if err := s.place(t, r, o); err != nil {
		return nil, err
	}
	o, err := s.admit(t, r, o)
	if err != nil {
		return nil, err
	}
	o.SetCreationTimestamp(metav1.Now())
	if t.generation {
		o.SetGeneration(1)
	}
	return s.created(t, o)
}

// admit completes a new object, and returns why it cannot be stored. With a schema, an object has to be valid before its
// name matters.
func (s *Server) admit(t *table, r Request, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var taken error
	if t.get(keyOf(o)) != nil {
		taken = apierrors.NewAlreadyExists(t.name(), o.GetName())
	}
	if taken != nil && s.schemaOf(t, r.Resource.Version) == nil {
		return nil, taken
	}
	if o.GetResourceVersion() != "" {
		return nil, errVersion
	}
	t.rewrite(o)
	if t.status && !s.typed(t, r) && !t.createsStatus() {
		delete(o.Object, "status")
	}
	for _, field := range []string{"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	if r.contentType != string(types.ApplyPatchType) {
		o.SetManagedFields(nil)
		o = s.owners.updated(t, r, nil, o)
	}
	o.SetUID(s.uid())
	if err := cmp.Or(s.begin(t, r, o), t.accept(o), s.escalates(t, r, o)); err != nil {
		return nil, err
	}
	if errs := s.check(t, r, o, nil); len(errs) > 0 {
		return nil, apierrors.NewInvalid(t.refusedKind(), o.GetName(), errs)
	}
	return o, taken
}

// createsStatus reports whether the creation of an object stores the status that was sent. Kubelets create their nodes so.
func (t *table) createsStatus() bool { return t.group == "" && t.plural == "nodes" }

// longestPrefix is how much of a prefix stays in a generated name.
const longestPrefix = 58

// generated returns a new name.
func (s *Server) generated(prefix string) string {
	return fmt.Sprintf("%s%05d", prefix[:min(len(prefix), longestPrefix)], s.version+1)
}

// created stores the object, with the consequences of its creation.
func (s *Server) created(t *table, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if t.name() == namespaces() && s.garbage != nil {
		return s.settle(t, o), nil
	}
	if t.name() != crds() {
		return s.commit(t, store.Added, o), nil
	}
	r, err := resourceOf(o)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if _, taken := s.tables[r.name()]; taken {
		return nil, apierrors.NewBadRequest(r.name().String() + " is served already")
	}
	forms, err := s.formsOf(o)
	if err != nil {
		return nil, err
	}
	establish(o)
	if s.dry {
		return s.commit(t, store.Added, o), nil
	}
	s.serve(r, forms)
	return s.commit(t, store.Added, o), nil
}

// place checks that there is a name and that the namespace exists.
func (s *Server) place(t *table, r Request, o *unstructured.Unstructured) error {
	if o.GetName() == "" && s.schemaOf(t, r.Resource.Version) == nil { // a schema says so with all else that is wrong
		return apierrors.NewInvalid(t.groupKind(), "", field.ErrorList{
			field.Required(field.NewPath("metadata", "name"), "name or generateName is required")})
	}
	if err := r.placed(o); err != nil {
		return err
	}
	if err := s.accepts(t, r.Namespace, o.GetName()); err != nil {
		return err
	}
	return s.acceptsKind(t, o.GetName())
}

// accepts returns why an object cannot be created in a namespace, or nil.
func (s *Server) accepts(t *table, namespace, name string) error {
	if namespace == "" {
		return nil
	}
	found := s.tables[namespaces()].get(types.NamespacedName{Name: namespace})
	switch {
	case found == nil:
		return apierrors.NewNotFound(namespaces(), namespace)
	case found.GetDeletionTimestamp() != nil:
		err := forbidden(t.name(), name, "unable to create new content in namespace "+namespace+" because it is being terminated")
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
			Type: corev1.NamespaceTerminatingCause, Field: "metadata.namespace", Message: "namespace " + namespace + " is being terminated",
		})
		return err
	}
	return nil
}

// acceptsKind returns why no objects of a CRD can be created, or nil.
func (s *Server) acceptsKind(t *table, name string) error {
	if crd := s.crdOf(t); crd != nil && crd.GetDeletionTimestamp() != nil {
		return forbidden(t.name(), name, "create not allowed while custom resource definition is terminating")
	}
	return nil
}

// now returns the time in the form of metadata.
func now() string { return after(0) }
