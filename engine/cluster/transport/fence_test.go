// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// TestFence holds which requests a process that does not lead may send, wherever the server is.
func TestFence(t *testing.T) {
	const review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	tests := map[string]struct {
		host, method, path string
		passes             bool
	}{
		"a read":                              {"https://cluster", "GET", "/api/v1/pods", true},
		"an access review":                    {"https://cluster", "POST", review, true},
		"the question who asks":               {"https://cluster", "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", true},
		"a review of a token":                 {"https://cluster", "POST", "/apis/authentication.k8s.io/v1/tokenreviews", false},
		"a write":                             {"https://cluster", "PATCH", "/api/v1/namespaces/default/pods/web", false},
		"a review behind a path":              {"https://rancher/k8s/clusters/c-1", "POST", "/k8s/clusters/c-1" + review, true},
		"a path that ends with a slash":       {"https://rancher/k8s/clusters/c-1/", "POST", "/k8s/clusters/c-1" + review, true},
		"a host without a scheme":             {"cluster:6443", "POST", review, true},
		"a path that only ends like a review": {"https://cluster", "POST", "/apis/example.com/v1/proxies/web" + review, false},
		"a review of another server":          {"https://rancher/k8s/clusters/c-1", "POST", review, false},
		"a write behind a path":               {"https://rancher/k8s/clusters/c-1", "DELETE", "/k8s/clusters/c-1/api/v1/pods", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			fence, err := NewFence(&rest.Config{Host: test.host}, &leadership{})
			if err != nil {
				t.Fatal(err)
			}
			sent := false
			f := fence.Transport(fencedTrip(func(*http.Request) (*http.Response, error) {
				sent = true
				return &http.Response{Body: http.NoBody}, nil
			}))
			request, err := http.NewRequestWithContext(t.Context(), test.method, "https://x"+test.path, strings.NewReader(""))
			if err != nil {
				t.Fatal(err)
			}
			response, err := f.RoundTrip(request)
			if err == nil {
				_ = response.Body.Close()
			}
			if sent != test.passes || errors.Is(err, ErrNotLeading) == test.passes {
				t.Errorf("sent: %v, %v", sent, err)
			}
		})
	}
}

// leadership records whether a conflict was reported.
type leadership struct{ leads, reported bool }

func (l *leadership) Sure(context.Context) bool { return l.leads }

func (l *leadership) Conflict(context.Context) { l.reported = true }

type fencedTrip func(*http.Request) (*http.Response, error)

func (f fencedTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// TestWhichConflictsAreReported holds which 409 may be another leader's doing: one to a write that was worked out from an
// older version of its object.
func TestWhichConflictsAreReported(t *testing.T) {
	tests := map[string]struct {
		method, content string
		code            int
		reported        bool
	}{
		"a merge patch that came too late":    {"PATCH", "application/merge-patch+json", http.StatusConflict, true},
		"an update that came too late":        {"PUT", "application/json", http.StatusConflict, true},
		"a name that is taken":                {"POST", "application/json", http.StatusConflict, false},
		"an apply where an object is":         {"PATCH", "application/apply-patch+yaml", http.StatusConflict, false},
		"a deletion of what is there no more": {"DELETE", "application/json", http.StatusConflict, false},
		"a patch that is taken":               {"PATCH", "application/merge-patch+json", http.StatusOK, false},
		"a patch that is not valid":           {"PATCH", "application/merge-patch+json", http.StatusUnprocessableEntity, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := &leadership{leads: true}
			fence, err := NewFence(&rest.Config{Host: "https://cluster"}, l)
			if err != nil {
				t.Fatal(err)
			}
			request, err := http.NewRequestWithContext(t.Context(), test.method, "https://cluster/api/v1/namespaces/default/pods/web", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", test.content)
			response, err := fence.Transport(fencedTrip(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: test.code, Body: http.NoBody}, nil
			})).RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if l.reported != test.reported {
				t.Errorf("reported: %v", l.reported)
			}
		})
	}
}
