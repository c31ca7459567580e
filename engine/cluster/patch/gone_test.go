// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl"
)

// saying is a server that refuses patches and answers reads as a test says.
type saying struct {
	dynamic.ResourceInterface
	patch error
	live  *unstructured.Unstructured
	get   error
	reads int
}

func (s *saying) Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (*unstructured.Unstructured, error) {
	return nil, s.patch
}

func (s *saying) Get(context.Context, string, metav1.GetOptions, ...string) (*unstructured.Unstructured, error) {
	s.reads++
	return s.live, s.get
}

// TestGoneIsConfirmed holds when an object counts as gone to which a write was sent.
func TestGoneIsConfirmed(t *testing.T) {
	foos := schema.GroupResource{Group: "example.com", Resource: "foos"}
	own := apierrors.NewNotFound(foos, "a")
	client := apierrors.NewGenericServerResponse(http.StatusNotFound, "PATCH", foos, "a", "404 page not found", 0, true)
	conflict := apierrors.NewConflict(foos, "a", errors.New("changed"))
	object := func(uid types.UID) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: tree{"metadata": tree{"name": "a", "uid": string(uid), "resourceVersion": "1"}}}
		return o
	}
	tests := map[string]struct {
		server saying
		gone   bool
		reads  int
	}{
		"a read says so too":                        {saying{patch: own, get: own}, true, 1},
		"a read finds another object":               {saying{patch: own, live: object("v")}, true, 1},
		"a read finds it":                           {saying{patch: own, live: object("u")}, false, 1},
		"a read fails":                              {saying{patch: own, get: errAny}, false, 1},
		"a read finds the resource not served":      {saying{patch: own, get: client}, false, 1},
		"the resource is not served":                {saying{patch: client, get: own}, false, 0},
		"the 404 is of another object":              {saying{patch: apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "a"), get: own}, false, 0},
		"a conflict, and a read that finds none":    {saying{patch: conflict, get: own}, true, 1},
		"a conflict, and a resource not served now": {saying{patch: conflict, get: client}, false, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := dsl.NewPatch()
			p.Label("a", "b")
			_, err := Write(t.Context(), Target{Client: &test.server, Object: object("u"), Resource: foos}, p, Marks{})
			if err == nil || errors.Is(err, ErrGone) != test.gone || test.server.reads != test.reads {
				t.Errorf("%d reads, %v", test.server.reads, err)
			}
		})
	}
}

var errAny = errors.New("connection refused")
