// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// refusal says which objects the server refuses.
type refusal struct {
	review func(*unstructured.Unstructured) error
}

// Refuse makes the server refuse objects of a resource for which review returns an error. The returned function
// ends that.
func (s *Server) Refuse(resource schema.GroupResource, review func(*unstructured.Unstructured) error) (end func()) {
	r := &refusal{review}
	s.each([]schema.GroupResource{resource}, func(t *table) { t.refusals = append(t.refusals, r) })
	return func() {
		s.each([]schema.GroupResource{resource}, func(t *table) {
			t.refusals = slices.DeleteFunc(t.refusals, func(each *refusal) bool { return each == r })
		})
	}
}

// refused returns why an object cannot be stored, or nil. An error of the API machinery is the response; any other
// becomes the denial of a webhook.
func (s *Server) refused(t *table, r Request, o *unstructured.Unstructured) error {
	for _, each := range t.refusals {
		err := each.review(o)
		var known apierrors.APIStatus
		switch {
		case errors.As(err, &known):
			return err
		case err != nil:
			return forbidden(t.name(), o.GetName(), "admission webhook denied the request: "+err.Error())
		}
	}
	if s.schemaOf(t, t.hub(r)) != nil {
		return nil // a schema says so with all else that is wrong
	}
	annotations := field.NewPath("metadata", "annotations")
	if errs := validation.ValidateAnnotations(o.GetAnnotations(), annotations); len(errs) > 0 {
		return apierrors.NewInvalid(t.groupKind(), o.GetName(), errs)
	}
	return nil
}
