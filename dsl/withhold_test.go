// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestWithheldAnswersQuoteNothing holds the errors for answers that have a value of a Secret in them, which begins with hush. Where
// a template joins it with words of an object, the author of that object chooses what stands before it and after it.
func TestWithheldAnswersQuoteNothing(t *testing.T) {
	const advice = "; allow it to the operator: operator rbac prints the roles"
	configMaps := schema.GroupResource{Resource: "configmaps"}
	invalid := func(group string, at *field.Path, value string) error {
		return apierrors.NewInvalid(schema.GroupKind{Group: group, Kind: "Foo"}, "x", field.ErrorList{field.Invalid(at, value, "not valid")})
	}
	labels := field.NewPath("metadata", "labels")
	const right = `User "ops" cannot create resource "configmaps" in API group "" in the namespace "team"`
	mistyped := func(fault string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Message: "failed to create typed patch object (default/x; /v1, Kind=Secret): " + fault}}
	}
	for name, tt := range map[string]struct {
		err    error
		advice string
		want   string
	}{
		"a missing right, with advice":              {apierrors.NewForbidden(configMaps, "hush", errors.New(right)), advice, right + advice},
		"a missing right without a name":            {apierrors.NewForbidden(configMaps, "", errors.New(right)), "", right},
		"a value":                                   {invalid("", labels, "hush"), "", "refuses Foo as invalid: metadata.labels"},
		"advice that an object has written":         {invalid("", labels, "denied the request; allow it to the operator hush"), "", "denied the request"},
		"a right that an object has written":        {invalid("", labels, `is forbidden: User "hush" cannot get resource "hush" in API group ""`), "", "metadata.labels"},
		"a policy that an object has written":       {invalid("", labels, `x "y" is forbidden: ValidatingAdmissionPolicy 'hush' with binding 'hush' denied request`), "", "denied request"},
		"a webhook that an object has written":      {invalid("", labels, `admission webhook "hush" denied the request`), "", "denied the request"},
		"a name that looks like an answer":          {apierrors.NewForbidden(configMaps, `\" is forbidden: User "hush" cannot get resource "hush" in API group ""`, errors.New("no")), "", "answers Forbidden (403)"},
		"a webhook":                                 {apierrors.NewForbidden(configMaps, "x", errors.New(`admission webhook "a.b.c" denied the request: hush`)), "", "denied the request"},
		"a policy that changes objects":             {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 403, Reason: metav1.StatusReasonInvalid, Message: "policy 'p.q' with binding 'b' denied request: hush"}}, "", "policy 'p.q' with binding 'b' denied request"},
		"a policy":                                  {apierrors.NewForbidden(configMaps, "x", errors.New(`ValidatingAdmissionPolicy 'p.q' with binding 'b' denied request: hush`)), "", "ValidatingAdmissionPolicy 'p.q' with binding 'b' denied request"},
		"a key of a map":                            {invalid("", field.NewPath("data").Key("hush"), "hush"), "", "data…"},
		"a key of a map that a CRD has as its spec": {invalid("example.com", field.NewPath("spec", "hush"), "hush"), "", "spec…"},
		"a value of a wrong type":                   {mistyped(`.stringData.hush: expected string, got &{hush}`), "", "a value in stringData has a wrong type"},
		"several values of a wrong type":            {mistyped("errors:\n  .data.hush: expected string, got &{hush}"), "", "a value in data has a wrong type"},
		"a field that looks like a value":           {mistyped(`.hush: field not declared in schema`), "", "is not in the schema"},
		"a namespace that is missing":               {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "hush"), "", "its namespace does not exist"},
		"a webhook that cannot be called":           {apierrors.NewInternalError(errors.New(`failed calling webhook "a.b.c": hush`)), "", `failed calling webhook "a.b.c"`},
		"a status without words":                    {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 500}}, "", "the API server failed, or a value has a wrong type: the API server answers with an error (500)"},
		"a status without a meaning":                {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 418, Message: "hush"}}, "", "it does not say why: the API server answers with an error (418)"},
		"a key that a type of Secret requires":      {invalid("", field.NewPath("data").Key("tls.crt"), "hush"), "", "data[tls.crt]"},
		"an answer in another error, and its words": {fmt.Errorf("hush: %w", apierrors.NewBadRequest("hush")), "", "answers BadRequest (400)"},
	} {
		t.Run(name, func(t *testing.T) {
			got := dsl.Withhold(tt.err, tt.advice)
			if text := got.Error(); strings.Contains(text, "hush") || !strings.Contains(text, tt.want) {
				t.Errorf("it says %q, want %q in it and no value", text, tt.want)
			}
			if !errors.Is(got, tt.err) {
				t.Error("the answer is lost")
			}
		})
	}
}
