// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/crd"
)

// crdServer has one CRD, whose conditions a test sets by the time since the CRD was applied.
type crdServer struct {
	conditions func(time.Duration) []any
	applied    time.Time
	tree       map[string]any
	writes     int
	// version is the CRD's. Meanwhile, if it is not nil, is called once when the CRD was read.
	version   int
	meanwhile func()
}

// RoundTrip answers a request.
func (s *crdServer) RoundTrip(r *http.Request) (*http.Response, error) {
	code, body := http.StatusOK, any(nil)
	switch {
	case r.URL.Query().Has("dryRun"):
		body = s.tree
	case r.Method == http.MethodPatch:
		tree := map[string]any{}
		if err := json.NewDecoder(r.Body).Decode(&tree); err != nil {
			return nil, err
		}
		if of, _, _ := unstructured.NestedString(tree, "metadata", "resourceVersion"); of != "" && of != fmt.Sprint(s.version) {
			code, body = http.StatusConflict, map[string]any{"kind": "Status", "apiVersion": "v1", "reason": "Conflict", "code": 409}
			break
		}
		s.writes++
		s.applied, body = time.Now(), s.put(tree)
	case s.tree == nil:
		code, body = http.StatusNotFound, map[string]any{"kind": "Status", "apiVersion": "v1", "reason": "NotFound", "code": 404}
	default:
		s.tree["status"] = map[string]any{"conditions": s.conditions(time.Since(s.applied))}
		body = s.tree
	}
	data, err := json.Marshal(body)
	if meanwhile := s.meanwhile; meanwhile != nil && r.Method == http.MethodGet {
		s.meanwhile = nil
		meanwhile()
	}
	return &http.Response{
		StatusCode: code, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(string(data))),
	}, err
}

// put stores the CRD as its next version.
func (s *crdServer) put(tree map[string]any) any {
	s.version++
	s.tree = tree
	tree["metadata"].(map[string]any)["resourceVersion"] = fmt.Sprint(s.version)
	return tree
}

func condition(kind, status, message string) any {
	return map[string]any{"type": kind, "status": status, "message": message}
}

func withCRD(t *testing.T) *dsl.Operator {
	t.Helper()
	op := dsl.New("webapp")
	op.Resource("webapps.v1.example.com", func(r *dsl.Resource) {
		r.CRD = map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": "webapps.example.com"},
			"spec":     map[string]any{"scope": "Cluster", "versions": []any{map[string]any{"name": "v1", "served": true}}},
		}
	})
	return op
}

func TestInstallingWaitsUntilACRDIsServed(t *testing.T) {
	accepted, established := condition("NamesAccepted", "True", ""), condition("Established", "True", "")
	tests := map[string]struct {
		conditions func(time.Duration) []any
		want       string
		after      time.Duration
	}{
		"at once": {func(time.Duration) []any { return []any{accepted, established} }, "", 0},
		"in a while": {func(since time.Duration) []any {
			if since < 5*time.Second {
				return []any{accepted, condition("Established", "False", "installing")}
			}
			return []any{accepted, established}
		}, "", 5 * time.Second},
		"never": {func(time.Duration) []any { return nil }, "installing CRD webapps.example.com: it is not served after 30s: it has no condition NamesAccepted", 30 * time.Second},
		"because of its names": {
			func(time.Duration) []any {
				return []any{condition("NamesAccepted", "False", `"WebApp" is already in use`), condition("Established", "False", "not all names are accepted")}
			},
			`it is not served after 30s: NamesAccepted is False: "WebApp" is already in use`, 30 * time.Second,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &crdServer{conditions: test.conditions}
				begin := time.Now()
				err := crd.Install(t.Context(), withCRD(t), &rest.Config{Host: "http://server", Transport: s, QPS: -1}, crd.Settings{})
				if text := errorText(err); !strings.Contains(text, test.want) || (text == "") != (test.want == "") {
					t.Errorf("error is %q, want %q", text, test.want)
				}
				if took := time.Since(begin); took < test.after || took > test.after+time.Second {
					t.Errorf("it took %v, want %v", took, test.after)
				}
				if s.writes != 1 {
					t.Errorf("%d writes, want one", s.writes)
				}
			})
		})
	}
}

// servers are one for each CRD, all of whose answers take a while.
type servers struct {
	trip time.Duration
	mu   sync.Mutex
	of   map[string]*crdServer
}

// RoundTrip answers a request.
func (s *servers) RoundTrip(r *http.Request) (*http.Response, error) {
	<-time.After(s.trip)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[r.URL.Path] == nil {
		s.of[r.URL.Path] = &crdServer{conditions: func(time.Duration) []any {
			return []any{condition("NamesAccepted", "True", ""), condition("Established", "True", "")}
		}}
	}
	return s.of[r.URL.Path].RoundTrip(r)
}

// TestCRDsThatAreUpToDateTakeOneRoundTrip holds that all CRDs are read at once, and that one that is served is not read again.
func TestCRDsThatAreUpToDateTakeOneRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op := withCRD(t)
		op.Resource("shops.v1.example.com", func(r *dsl.Resource) {
			r.CRD = map[string]any{
				"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "shops.example.com"},
				"spec": map[string]any{"scope": "Cluster", "versions": []any{map[string]any{"name": "v1", "served": true}}},
			}
		})
		const trip = 20 * time.Millisecond
		all := &servers{trip: trip, of: map[string]*crdServer{}}
		install := func() (took time.Duration) {
			begun := time.Now()
			if err := crd.Install(t.Context(), op, &rest.Config{Host: "http://server", Transport: all, QPS: -1}, crd.Settings{}); err != nil {
				t.Error(err)
			}
			return time.Since(begun)
		}
		install()
		if took := install(); took != trip {
			t.Errorf("installing again took %v, want one round trip, which is %v", took, trip)
		}
	})
}

// TestACRDThatChangesWhileItIsInstalledIsLookedAtAgain holds that an install does not take away what somebody has added since it read
// the CRD, as a newer process of the operator does.
func TestACRDThatChangesWhileItIsInstalledIsLookedAtAgain(t *testing.T) {
	tree := func(label string, versions ...string) map[string]any {
		var list []any
		for _, name := range versions {
			list = append(list, map[string]any{"name": name, "served": true})
		}
		return map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": "webapps.example.com", "labels": map[string]any{"of": label}},
			"spec":     map[string]any{"scope": "Cluster", "versions": list},
		}
	}
	for name, test := range map[string]struct {
		now    map[string]any
		refuse string
	}{
		"another version is served":  {tree("others", "v1", "v2"), "version v2 is served, and the configuration does not have it"},
		"something else has changed": {tree("others", "v1"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &crdServer{conditions: func(time.Duration) []any {
					return []any{condition("NamesAccepted", "True", ""), condition("Established", "True", "")}
				}}
				s.put(tree("", "v1"))
				s.meanwhile = func() { s.put(test.now) }
				err := crd.Install(t.Context(), withCRD(t), &rest.Config{Host: "http://server", Transport: s, QPS: -1}, crd.Settings{})
				if text := errorText(err); !strings.Contains(text, test.refuse) || (text == "") != (test.refuse == "") {
					t.Errorf("error is %q, want %q", text, test.refuse)
				}
				if want := map[bool]int{true: 1}[test.refuse == ""]; s.writes != want {
					t.Errorf("%d writes, want %d", s.writes, want)
				}
			})
		})
	}
}

// TestTheCheckRejectsWhatAnInstallationRejects holds that the check says so also where the API server would take the CRD.
func TestTheCheckRejectsWhatAnInstallationRejects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op := withCRD(t)
		s := &crdServer{conditions: func(time.Duration) []any { return nil }}
		live := runtime.DeepCopyJSON(op.Resources()[0].CRD)
		live["spec"].(map[string]any)["versions"] = []any{map[string]any{"name": "v1", "served": true}, map[string]any{"name": "v1beta1", "served": true}}
		s.put(live)
		config := &rest.Config{Host: "http://server", Transport: s, QPS: -1}
		const want = "version v1beta1 is served, and the configuration does not have it"
		if err := crd.Install(t.Context(), op, config, crd.Settings{}); !strings.Contains(errorText(err), want) {
			t.Errorf("installing says %v, want %q", err, want)
		}
		trial, err := crd.Try(t.Context(), op, config, op.Resources()[0])
		if err != nil || len(trial.Rejected) != 1 || !strings.HasPrefix(trial.Rejected[0].Error(), "--install-crds rejects the CRD: "+want) {
			t.Errorf("the check says %+v, %v, want %q", trial, err, want)
		}
		if s.version != 1 {
			t.Errorf("the CRD was written")
		}
	})
}

func TestInstallingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begin := time.Now()
		s := &crdServer{conditions: func(time.Duration) []any { return nil }}
		err := crd.Install(ctx, withCRD(t), &rest.Config{Host: "http://server", Transport: s, QPS: -1}, crd.Settings{})
		if took := time.Since(begin); err == nil || took > 4*time.Second {
			t.Errorf("error is %v after %v", err, took)
		}
	})
}

func TestNothingToInstallIsNoFault(t *testing.T) {
	op := dsl.New("webapp")
	op.Resource("webapps.v1.example.com", nil)
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	if err := crd.Install(t.Context(), op, &rest.Config{Host: "http://server"}, crd.Settings{Log: log}); err != nil {
		t.Error(err)
	}
	if want := []string{`"level"=0 "msg"="there are no CRDs to install: no resource has a schema"`}; !slices.Equal(lines, want) {
		t.Errorf("the log says %q, want %q", lines, want)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
