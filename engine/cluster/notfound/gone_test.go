// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package notfound_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/engine/cluster/notfound"
)

// TestSays holds that only a server that was asked for the object itself can say that it is gone.
func TestSays(t *testing.T) {
	foos := schema.GroupResource{Group: "example.com", Resource: "foos"}
	bare := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound}}
	tests := map[string]struct {
		err  error
		want bool
	}{
		"the object is not found":               {apierrors.NewNotFound(foos, "web"), true},
		"the same, wrapped":                     {fmt.Errorf("reading: %w", apierrors.NewNotFound(foos, "web")), true},
		"the page is not found":                 {apierrors.NewGenericServerResponse(http.StatusNotFound, "GET", foos, "web", "404 page not found", 0, true), false},
		"the same of a client without resource": {apierrors.NewGenericServerResponse(http.StatusNotFound, "GET", schema.GroupResource{}, "", "404 page not found", 0, true), false},
		"a status without details":              {bare, false},
		"another object":                        {apierrors.NewNotFound(foos, "other"), false},
		"an object of another resource":         {apierrors.NewNotFound(schema.GroupResource{Group: "example.com", Resource: "bars"}, "web"), false},
		"one of another group":                  {apierrors.NewNotFound(schema.GroupResource{Resource: "foos"}, "web"), false},
		"its namespace":                         {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "web"), false},
		"gone, as a version of the watch is":    {apierrors.NewResourceExpired("too old"), false},
		"forbidden":                             {apierrors.NewForbidden(foos, "web", errors.New("no")), false},
		"an error of the network":               {errors.New("connection refused"), false},
		"no error":                              {nil, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := notfound.IsGone(tt.err, foos, "web"); got != tt.want {
				t.Errorf("Says is %t, want %t", got, tt.want)
			}
		})
	}
	if notfound.IsGone(apierrors.NewNotFound(foos, ""), foos, "") {
		t.Error("a NotFound of nothing names something")
	}
}

// TestUnserved holds that a 404 of the path is distinguished from one of an object.
func TestUnserved(t *testing.T) {
	foos := schema.GroupResource{Group: "example.com", Resource: "foos"}
	page := apierrors.NewGenericServerResponse(http.StatusNotFound, "GET", foos, "web", "404 page not found", 0, true)
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"the page is not found":          {page, true},
		"the same, wrapped":              {fmt.Errorf("reading: %w", page), true},
		"the object is not found":        {apierrors.NewNotFound(foos, "web"), false},
		"its namespace is not found":     {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "web"), false},
		"a text that is no answer of it": {apierrors.NewGenericServerResponse(http.StatusBadGateway, "GET", foos, "web", "bad gateway", 0, true), false},
		"no error":                       {nil, false},
	} {
		if got := notfound.IsUnserved(tt.err); got != tt.want {
			t.Errorf("%s: Unserved is %t, want %t", name, got, tt.want)
		}
	}
}

// TestWith holds which answers to writes are of objects that went with them.
func TestWith(t *testing.T) {
	object := func(metadata string) *unstructured.Unstructured {
		out := &unstructured.Unstructured{}
		if err := out.UnmarshalJSON([]byte(`{"kind":"Foo","apiVersion":"example.com/v1","metadata":{` + metadata + `}}`)); err != nil {
			t.Fatal(err)
		}
		return out
	}
	const deleted = `"deletionTimestamp":"2000-01-01T00:00:00Z"`
	for name, tt := range map[string]struct {
		metadata string
		want     bool
	}{
		"one that lives": {`"name":"web"`, false},
		"one that is being deleted, without finalizers": {deleted, true},
		"one that another finalizer holds":              {deleted + `,"finalizers":["a/b"]`, false},
		"one whose grace period runs":                   {deleted + `,"deletionGracePeriodSeconds":30`, false},
		"one whose grace period is over":                {deleted + `,"deletionGracePeriodSeconds":0`, true},
	} {
		if got := notfound.IsGoneAfter(object(tt.metadata)); got != tt.want {
			t.Errorf("%s: With is %t, want %t", name, got, tt.want)
		}
	}
}
