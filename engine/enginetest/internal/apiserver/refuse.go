// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// refusal says what a server does not store.
type refusal struct {
	review func(*unstructured.Unstructured) error
}

// Refuse makes the server not store objects of a resource for which review returns an error. What it
// returns ends that.
func (s *Server) Refuse(resource schema.GroupResource, review func(*unstructured.Unstructured) error) (end func()) {
	r := &refusal{review}
	s.each([]schema.GroupResource{resource}, func(t *table) { t.refusals = append(t.refusals, r) })
	return func() {
		s.each([]schema.GroupResource{resource}, func(t *table) {
			t.refusals = slices.DeleteFunc(t.refusals, func(each *refusal) bool { return each == r })
		})
	}
}

// accept reports why an object cannot be stored, if so. An error of the API machinery is the answer; any
// other is what a server says of a webhook that denies.
func (t *table) accept(o *unstructured.Unstructured) error {
	for _, r := range t.refusals {
		err := r.review(o)
		var known apierrors.APIStatus
		switch {
		case errors.As(err, &known):
			return err
		case err != nil:
			return forbidden(t.name(), o.GetName(), "admission webhook denied the request: "+err.Error())
		}
	}
	annotations := field.NewPath("metadata", "annotations")
	if errs := validation.ValidateAnnotations(o.GetAnnotations(), annotations); len(errs) > 0 {
		return apierrors.NewInvalid(t.groupKind(), o.GetName(), errs)
	}
	return nil
}
