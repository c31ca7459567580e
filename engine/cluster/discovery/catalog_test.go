// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
)

func name(t *testing.T, text string) dsl.ResourceName {
	t.Helper()
	n, err := dsl.ParseResourceName(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// check compares an error with what it should say and whether it should be ErrMissing.
func check(t *testing.T, err error, want string, missing bool) {
	t.Helper()
	switch {
	case (err == nil) != (want == ""):
		t.Errorf("error is %v, want %q", err, want)
	case err != nil && !strings.Contains(err.Error(), want):
		t.Errorf("error is %q, want %q in it", err, want)
	case errors.Is(err, ErrMissing) != missing:
		t.Errorf("error is ErrMissing: %v, want %v (%v)", errors.Is(err, ErrMissing), missing, err)
	}
}

var (
	pods = Resource{
		GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Kind: "Pod", Singular: "pod",
		Namespaced: true, Status: true, Verbs: []string{"create", "get", "list", "watch"},
	}
	deployments = Resource{
		GVR:  schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		Kind: "Deployment", Singular: "deployment", Namespaced: true, Status: true, Scale: true, Verbs: []string{"get", "list", "watch"},
	}
	foosV1 = Resource{
		GVR:  schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "foos"},
		Kind: "Foo", Singular: "foo", Namespaced: true, Scale: true, Verbs: []string{"list", "watch"},
	}
	foosV1beta1 = Resource{
		GVR:  schema.GroupVersionResource{Group: "example.com", Version: "v1beta1", Resource: "foos"},
		Kind: "Foo", Singular: "foo", Namespaced: true, Verbs: []string{"list", "watch"},
	}
	bars = Resource{
		GVR:  schema.GroupVersionResource{Group: "example.com", Version: "v1beta1", Resource: "bars"},
		Kind: "Bar", Singular: "bar", Namespaced: true, Verbs: []string{"list", "watch"},
	}
	widgets = Resource{
		GVR:  schema.GroupVersionResource{Group: "half.example.com", Version: "v1", Resource: "widgets"},
		Kind: "Widget", Singular: "widget", Namespaced: true, Verbs: []string{"list", "watch"},
	}
	statuses = Resource{
		GVR:  schema.GroupVersionResource{Version: "v1", Resource: "componentstatuses"},
		Kind: "ComponentStatus", Singular: "componentstatus", Short: []string{"cs"}, Verbs: []string{"get", "list"},
	}
)

// both runs a test against a server with and one without aggregated discovery.
func both(t *testing.T, test func(t *testing.T, c *Catalog)) {
	t.Helper()
	for mode, legacy := range map[string]bool{"aggregated": false, "one by one": true} {
		t.Run(mode, func(t *testing.T) {
			test(t, New((&server{legacy: legacy}).client(t), nil, nil))
		})
	}
}

func TestResolve(t *testing.T) {
	tests := map[string]struct {
		name    string
		want    Resource
		wantErr string
		missing bool
	}{
		"a core resource with its version":       {name: "pods.v1", want: pods},
		"a core resource without a version":      {name: "pods", want: pods},
		"a grouped resource":                     {name: "deployments.v1.apps", want: deployments},
		"without a version the preferred one":    {name: "foos.example.com", want: foosV1},
		"with a version that one":                {name: "foos.v1beta1.example.com", want: foosV1beta1},
		"without a version the one that has it":  {name: "bars.example.com", want: bars},
		"a scale subresource is no status":       {name: "foos.v1.example.com", want: foosV1},
		"the whole half of a half broken group":  {name: "widgets.v1.half.example.com", want: widgets},
		"the whole half of it without a version": {name: "widgets.half.example.com", want: widgets},
		"a group that is not served": {
			name: "cats.zoo.io", missing: true,
			wantErr: "resolving resource cats.zoo.io: API group zoo.io: not served by the API server",
		},
		"a group without versions left": {
			name: "cats.v1.gone.example.com", missing: true, wantErr: "not served by the API server",
		},
		"a version that is not served": {
			name: "foos.v3.example.com", missing: true,
			wantErr: "API version example.com/v3 (there is v1, v1beta1): not served by the API server",
		},
		"a resource that is not served": {
			name: "cats.v1.example.com", missing: true,
			wantErr: "resolving resource cats.v1.example.com: resource cats: not served by the API server",
		},
		"a resource that is not served in any version": {
			name: "cats.example.com", missing: true, wantErr: "resource cats: not served",
		},
		"a resource that only another version has": {
			name: "bars.v1.example.com", missing: true, wantErr: "resource bars: not served",
		},
		"a subresource is not a resource": {
			name: "deployments-status.apps", missing: true, wantErr: "not served",
		},
		"a broken group": {
			name: "pods.v1beta1.metrics.k8s.io", wantErr: "API metrics.k8s.io/v1beta1 is broken: ",
		},
		"a broken group without a version": {
			name: "pods.metrics.k8s.io", wantErr: "API metrics.k8s.io/v1beta1 is broken: ",
		},
		"a version that is not there in a broken group": {
			name: "pods.v7.half.example.com", missing: true, wantErr: "API version half.example.com/v7",
		},
		"a resource that the broken half of a group may have": {
			name: "gadgets.half.example.com", wantErr: "API half.example.com/v2 is broken: ",
		},
		"a resource that cannot be watched": {
			name:    "componentstatuses",
			wantErr: "resolving resource componentstatuses: it cannot be listed and watched (its verbs are get, list)",
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			both(t, func(t *testing.T, c *Catalog) {
				got, err := c.Resolve(t.Context(), name(t, test.name))
				check(t, err, test.wantErr, test.missing)
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("resource (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestKindOf(t *testing.T) {
	tests := map[string]struct {
		apiVersion, kind string
		want             Resource
		wantErr          string
		missing          bool
	}{
		"a core kind":                   {apiVersion: "v1", kind: "Pod", want: pods},
		"a grouped kind":                {apiVersion: "apps/v1", kind: "Deployment", want: deployments},
		"a kind of one version":         {apiVersion: "example.com/v1beta1", kind: "Foo", want: foosV1beta1},
		"a kind that cannot be watched": {apiVersion: "v1", kind: "ComponentStatus", want: statuses},
		"a subresource's kind is not":   {apiVersion: "apps/v1", kind: "Scale", missing: true, wantErr: "kind Scale: not served"},
		"a kind that is not served": {
			apiVersion: "example.com/v1", kind: "Cat", missing: true,
			wantErr: "resolving kind Cat of example.com/v1: kind Cat: not served by the API server",
		},
		"a kind of a broken group": {
			apiVersion: "metrics.k8s.io/v1beta1", kind: "PodMetrics", wantErr: "API metrics.k8s.io/v1beta1 is broken",
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			both(t, func(t *testing.T, c *Catalog) {
				got, err := c.KindOf(t.Context(), schema.FromAPIVersionAndKind(test.apiVersion, test.kind))
				check(t, err, test.wantErr, test.missing)
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("resource (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// One look at an aggregating server is two requests: /api and /apis.
const look = 2

func TestSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{without: "foos"}
		c := New(s.client(t), nil, nil)
		foos := name(t, "foos.v1.example.com")
		resolve := func(step string, missing bool, requests int) {
			t.Helper()
			_, err := c.Resolve(t.Context(), foos)
			if errors.Is(err, ErrMissing) != missing || (err != nil) != missing {
				t.Errorf("%s: error is %v, want missing %v", step, err, missing)
			}
			if got := s.asked(); got != requests {
				t.Errorf("%s: %d requests, want %d", step, got, requests)
			}
		}
		resolve("the first time", true, look)
		resolve("missing, just asked", true, 0)
		s.set(func(s *server) { s.without = "" })
		resolve("there, but just asked", true, 0)
		<-time.After(freshness + time.Millisecond)
		resolve("missing, asked a while ago", false, look)
		<-time.After(time.Hour)
		resolve("known", false, 0)
		s.set(func(s *server) { s.without = "foos" })
		resolve("gone, but not invalidated", false, 0)
		c.Invalidate()
		resolve("gone and invalidated", true, look)
		s.set(func(s *server) { s.status = http.StatusInternalServerError })
		<-time.After(time.Minute)
		_, err := c.Resolve(t.Context(), foos)
		check(t, err, "asking what the API server serves: ", false)
		s.set(func(s *server) { s.status, s.without = 0, "" })
		s.asked()
		resolve("up again", false, look)
	})
}

func TestInvalidateWhileAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{delay: time.Second}
		c := New(s.client(t), nil, nil)
		done := make(chan error)
		go func() {
			_, err := c.Resolve(t.Context(), name(t, "pods"))
			done <- err
		}()
		<-time.After(s.delay / 2)
		c.Invalidate()
		if err := <-done; err != nil {
			t.Error(err)
		}
		s.asked()
		if _, err := c.Resolve(t.Context(), name(t, "pods")); err != nil {
			t.Error(err)
		}
		if got := s.asked(); got != look {
			t.Errorf("%d requests, want %d: the answer may be from before the change", got, look)
		}
	})
}

func TestConcurrentMissesShareOneLook(t *testing.T) {
	tests := map[string]struct {
		status  int
		leaving bool // the first one's context ends while it asks
		wantErr string
		want    int
	}{
		"an answer":                          {want: look},
		"an error":                           {status: 500, wantErr: "an error on the server", want: look},
		"not the end of the asker's context": {leaving: true, want: look + look},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{delay: 100 * time.Millisecond, status: test.status}
				c := New(s.client(t), nil, nil)
				var all sync.WaitGroup
				first, leave := context.WithCancel(t.Context())
				all.Go(func() {
					_, err := c.Resolve(first, name(t, "pods"))
					if test.leaving != errors.Is(err, context.Canceled) {
						t.Errorf("the first one's error is %v", err)
					}
				})
				synctest.Wait()
				for range 20 {
					all.Go(func() {
						_, err := c.Resolve(t.Context(), name(t, "pods"))
						check(t, err, test.wantErr, false)
					})
				}
				synctest.Wait()
				if test.leaving {
					leave()
				}
				all.Wait()
				leave()
				if got := s.asked(); got != test.want {
					t.Errorf("%d requests, want %d", got, test.want)
				}
			})
		})
	}
}

func TestWaitingForALookEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{delay: time.Minute}
		c := New(s.client(t), nil, nil)
		go func() { _, _ = c.Resolve(t.Context(), name(t, "pods")) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := c.Resolve(ctx, name(t, "pods")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v, want the context's", err)
		}
		if waited := time.Since(start); waited != time.Second {
			t.Errorf("waited for %v, want a second", waited)
		}
	})
}

func TestEndOfContextBreaksNoGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{legacy: true, delay: time.Second}
		c := New(s.client(t), nil, nil)
		// Long enough to see that nothing is aggregated, and for /api and /apis; too short for the groups.
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		_, err := c.Resolve(ctx, name(t, "pods"))
		check(t, err, "deadline exceeded", false)
		if kept, _, _ := c.state(); kept != nil {
			t.Error("a snapshot of groups that were not asked is kept")
		}
	})
}
