// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

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
		r.prefix = o.GetGenerateName()
		o.SetName(s.generated(r.prefix))
	}
	if err := s.place(t, r, o); err != nil {
		return nil, err
	}
	if err := t.taken(o); err != nil && s.schemaOf(t, r.Resource.Version) == nil { // with a schema, an object has to be valid before
		return nil, err
	}
	t.rewrite(o)
	if !t.custom { // the status that a client sends counts for managed fields of a custom resource
		s.stripStatus(t, r, o)
	}
	if r.Verb == "create" { // metadata that an update or an apply sends counts, too
		stripMetadata(o)
	}
	if r.contentType != string(types.ApplyPatchType) {
		o.SetManagedFields(nil)
		o = s.owners.updated(t, r, nil, o)
	}
	s.strip(t, r, o)
	o, err := s.mutate(t, r, nil, o)
	if err != nil {
		return nil, err
	}
	if err := s.admit(t, r, o); err != nil {
		return nil, err
	}
	return s.created(t, o)
}

// strip removes the fields that the creation of an object does not set.
func (s *Server) strip(t *table, r Request, o *unstructured.Unstructured) {
	s.stripStatus(t, r, o)
	stripMetadata(o)
}

// stripStatus removes the status that the creation of an object does not set.
func (s *Server) stripStatus(t *table, r Request, o *unstructured.Unstructured) {
	if t.status && !s.typed(t, r) && !t.createsStatus() {
		delete(o.Object, "status")
	}
}

// stripMetadata removes the metadata that the creation of an object does not set.
func stripMetadata(o *unstructured.Unstructured) {
	for _, field := range []string{"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
}

// admit completes the metadata of a new object, and returns why it cannot be stored.
func (s *Server) admit(t *table, r Request, o *unstructured.Unstructured) error {
	s.strip(t, r, o)  // a webhook may have set them
	if t.generation { // before it is checked: a sent one does not matter
		o.SetGeneration(1)
	}
	o.SetUID(s.uid())
	o.SetCreationTimestamp(metav1.NewTime(s.clock.Now()))
	if err := s.validate(t, r, o); err != nil {
		return err
	}
	if r.Verb == "create" && !s.dry && hasVersion(o) { // a dry run does not come to the storage
		return errVersion
	}
	return t.taken(o)
}

// taken returns an error if an object of the same name is stored.
func (t *table) taken(o *unstructured.Unstructured) error {
	stored := t.get(keyOf(o))
	if stored == nil {
		return nil
	}
	err := apierrors.NewAlreadyExists(t.name(), o.GetName())
	if o.GetGenerateName() != "" {
		err = apierrors.NewGenerateNameConflict(t.name(), o.GetName(), 1)
	}
	if stored.GetDeletionTimestamp() != nil {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}

// validate returns why a complete new object is not valid, or is refused by a webhook.
func (s *Server) validate(t *table, r Request, o *unstructured.Unstructured) error {
	if err := cmp.Or(s.begin(t, r, o), s.allocate(t, r, nil, o), s.refused(t, r, o), s.escalates(t, r, o)); err != nil {
		return err
	}
	if errs := s.check(t, r, o, nil); len(errs) > 0 {
		return apierrors.NewInvalid(t.refusedKind(), o.GetName(), errs)
	}
	return s.approve(t, r, nil, o)
}

// hasVersion reports whether an object says at which version it is.
func hasVersion(o *unstructured.Unstructured) bool {
	version, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	return err == nil && version != 0
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
		return s.write(t, store.Added, o)
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
	o.Object["status"] = firstStatus(r)
	first := s.commit(t, store.Added, o)
	if s.dry {
		return first, nil
	}
	s.byItself(func() {
		next := first.DeepCopy()
		s.accept(next)
		next = s.statusBy(apiServer, t, first, next)
		if isEstablished(next) {
			s.serve(next, r, forms)
		}
		s.commit(t, store.Modified, next)
	})
	return first, nil
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
