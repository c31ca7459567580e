// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/engine/gone"
	"github.com/handwerk-dev/handwerk/engine/rights"
)

// advising is a client of one resource. Where a right is missing, its errors say what to do: whoever
// reads them learns whether the roles of the operator are old, or whether nobody knew that its code
// would ask for this. A 404 of a path that is not served is no NotFound, which handlers, and
// engine/child, take for an object that is gone.
type advising struct {
	dynamic.ResourceInterface
	engine *Engine
}

// Get implements [dynamic.ResourceInterface], as the others.
func (a advising) Get(ctx context.Context, name string, options metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error) {
	o, err := a.ResourceInterface.Get(ctx, name, options, sub...)
	return o, a.engine.advise(ctx, err)
}

func (a advising) List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	list, err := a.ResourceInterface.List(ctx, options)
	return list, a.engine.advise(ctx, err)
}

func (a advising) Create(ctx context.Context, object *unstructured.Unstructured, options metav1.CreateOptions, sub ...string) (*unstructured.Unstructured, error) {
	o, err := a.ResourceInterface.Create(ctx, object, options, sub...)
	return o, a.engine.advise(ctx, err)
}

func (a advising) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, sub ...string) (*unstructured.Unstructured, error) {
	o, err := a.ResourceInterface.Patch(ctx, name, kind, data, options, sub...)
	return o, a.engine.advise(ctx, err)
}

func (a advising) Apply(ctx context.Context, name string, object *unstructured.Unstructured, options metav1.ApplyOptions, sub ...string) (*unstructured.Unstructured, error) {
	o, err := a.ResourceInterface.Apply(ctx, name, object, options, sub...)
	return o, a.engine.advise(ctx, err)
}

func (a advising) Delete(ctx context.Context, name string, options metav1.DeleteOptions, sub ...string) error {
	return a.engine.advise(ctx, a.ResourceInterface.Delete(ctx, name, options, sub...))
}

// refusedRight is how the API server says that a right is missing; what admission refuses, quotas and
// the like, reads otherwise. See responsewriters/errors.go in k8s.io/apiserver.
var refusedRight = regexp.MustCompile(`cannot ([a-z]+) resource "([a-z0-9./-]+)" in API group "([^"]*)"`)

// unservedError is the error of a request for something that the API server does not serve. It does not
// unwrap to the NotFound that client-go makes of it.
type unservedError struct{ answer string }

// Error says what was not found.
func (e *unservedError) Error() string {
	return "the API server does not serve the resource now, which says nothing of the object: " + e.answer
}

// advise adds to an answer of the API server that a right is missing what can be done about it, and
// tells a 404 of the path from one of an object. Other errors are left as they are.
func (e *Engine) advise(ctx context.Context, err error) error {
	if gone.Unserved(err) {
		return &unservedError{err.Error()}
	}
	right, answer := refusedIn(err)
	if answer == nil {
		return err
	}
	e.lacks.hear(err)
	advice := "allow it to the operator: operator rbac prints the roles"
	if known := rights.Of(e.op, rights.Settings{Lookup: lookupIn(ctx, e.op, e.catalog)}); !rights.Has(known, right.Group, right.Resource, right.Subresource, right.Verb) {
		advice = fmt.Sprintf("allow it to the operator: declare it with needs: [{resource: %[1]s, verbs: [%[2]s]}] (dsl.Needs(%[2]q, %[1]q) in Go), "+
			"and operator rbac prints the roles", right.Target(), right.Verb)
	}
	advised := &apierrors.StatusError{ErrStatus: *answer.ErrStatus.DeepCopy()}
	advised.ErrStatus.Message += "; " + advice
	return advised
}

// refusedIn returns the right that an answer of the API server says is missing, without a namespace, and
// that answer; nil when it says no such thing.
func refusedIn(err error) (rights.Rule, *apierrors.StatusError) {
	answer, is := errors.AsType[*apierrors.StatusError](err)
	if !is || answer.ErrStatus.Reason != metav1.StatusReasonForbidden {
		return rights.Rule{}, nil
	}
	found := refusedRight.FindStringSubmatch(answer.ErrStatus.Message)
	if found == nil {
		return rights.Rule{}, nil
	}
	resource, subresource, _ := strings.Cut(found[2], "/")
	return rights.Rule{Group: found[3], Resource: resource, Subresource: subresource, Verb: found[1]}, answer
}
