// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Review looks at an object as it is to be stored. It may change it, or refuse it with an error. It
// must not ask the server, which waits for it.
type Review func(*unstructured.Unstructured) error

// Admit has what is written to objects of the resources and to their status reviewed, after earlier
// reviews.
func (s *Server) Admit(resource schema.GroupResource, review Review) {
	s.each([]schema.GroupResource{resource}, func(t *table) { t.reviews = append(t.reviews, review) })
}

// admit returns the object as reviews leave it, or why it is not taken. An error of the API machinery is
// the answer; any other is what the server says of a webhook that denies.
func admit(t *table, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if len(t.reviews) > 0 {
		o = o.DeepCopy()
	}
	for _, review := range t.reviews {
		err := review(o)
		var known apierrors.APIStatus
		switch {
		case errors.As(err, &known):
			return nil, err
		case err != nil:
			return nil, forbidden(t.name(), o.GetName(), "admission webhook denied the request: "+err.Error())
		}
	}
	annotations := field.NewPath("metadata", "annotations")
	if errs := validation.ValidateAnnotations(o.GetAnnotations(), annotations); len(errs) > 0 {
		return nil, apierrors.NewInvalid(t.groupKind(), o.GetName(), errs)
	}
	return o, nil
}
