// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
)

// serving answers discovery with a resource bars in version v1 of example.org.
type serving struct{}

func (serving) RoundTrip(r *http.Request) (*http.Response, error) {
	body, found := map[string]string{
		"/api":  `{"kind": "APIVersions", "versions": []}`,
		"/apis": `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "example.org", "versions": [{"groupVersion": "example.org/v1", "version": "v1"}]}]}`,
		"/apis/example.org/v1": `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "example.org/v1",
			"resources": [{"name": "bars", "kind": "Bar", "namespaced": true, "verbs": ["list", "watch"]}]}`,
	}[r.URL.Path]
	status := http.StatusOK
	if !found {
		status = http.StatusNotFound
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

// named returns the locator of a resource with this name, or with a kind where that is given, on a server that serves bars in v1.
func named(t *testing.T, name string, kind schema.GroupVersionKind) *locator {
	t.Helper()
	client, err := clientdiscovery.NewDiscoveryClientForConfig(&rest.Config{Host: "http://server", Transport: serving{}})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := dsl.ParseResourceName(name)
	if err != nil {
		t.Fatal(err)
	}
	return &locator{at: &Location{name: parsed, kind: kind}, catalog: discovery.New(client, nil, nil)}
}

func TestALocatorFindsWhatIsServed(t *testing.T) {
	tests := map[string]struct {
		name    string
		kind    schema.GroupVersionKind
		missing bool
	}{
		"a version that is served":  {name: "bars.v1.example.org"},
		"no version":                {name: "bars.example.org"},
		"a kind":                    {name: "guess.v1.example.org", kind: schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Bar"}},
		"another version":           {name: "bars.v1alpha1.example.org", missing: true},
		"a kind in another version": {name: "guess.v2.example.org", kind: schema.GroupVersionKind{Group: "example.org", Version: "v2", Kind: "Bar"}, missing: true},
		"a resource that is not served in any version": {name: "foos.v1.example.org", missing: true},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			l := named(t, tt.name, tt.kind)
			err := l.find(t.Context())
			if errors.Is(err, discovery.ErrMissing) != tt.missing || l.at.Known() == tt.missing {
				t.Errorf("the error is %v, and known is %v", err, l.at.Known())
			}
			if got := l.at.Resource(); !tt.missing && (got.Kind != "Bar" || !got.Namespaced) {
				t.Errorf("it is found as %+v", got)
			}
		})
	}
}

// TestElsewhereIsAnotherVersion holds that a version which came between two questions is not said to be there in
// another version than its own.
func TestElsewhereIsAnotherVersion(t *testing.T) {
	for name, want := range map[string]string{"bars.v1.example.org": "", "bars.v1alpha1.example.org": "v1", "foos.v1.example.org": ""} {
		if got := named(t, name, schema.GroupVersionKind{}).elsewhere(t.Context()); got != want {
			t.Errorf("%s is said to be there as %q, want %q", name, got, want)
		}
	}
}

func TestALocationSaysWhatIsServed(t *testing.T) {
	v1, v2 := foos("v1"), foos("v2")
	tests := map[string]struct {
		do func(*Location)
		// want is what the location says: whether the resource is known, is gone, and is served as v1 and as v2.
		want string
		is   []string // the names that it has
	}{
		"nothing is known yet":             {func(*Location) {}, "- - - -", []string{"foos.example.com"}},
		"it is served":                     {func(l *Location) { l.found(v1) }, "known - v1 -", []string{"foos.example.com", "foos.v1.example.com"}},
		"it is served in a later version":  {func(l *Location) { l.found(v1); l.found(v2) }, "known - - v2", []string{"foos.example.com", "foos.v2.example.com"}},
		"it is gone":                       {func(l *Location) { l.found(v1); l.end() }, "- absent - -", []string{"foos.example.com"}},
		"it is gone and comes back":        {func(l *Location) { l.end(); l.found(v1) }, "known - v1 -", []string{"foos.example.com", "foos.v1.example.com"}},
		"it may be there and is not found": {func(l *Location) { l.end(); l.unserved(false) }, "- - - -", []string{"foos.example.com"}},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			l := &Location{name: dsl.ResourceName{Resource: "foos", Group: "example.com"}}
			tt.do(l)
			or := func(is bool, word string) string { return map[bool]string{true: word, false: "-"}[is] }
			got := fmt.Sprint(or(l.Known(), "known"), " ", or(l.Absent(), "absent"), " ", or(l.Serves(v1.GVR), "v1"), " ", or(l.Serves(v2.GVR), "v2"))
			if got != tt.want {
				t.Errorf("it says %q, want %q", got, tt.want)
			}
			var is []string
			for _, name := range []string{"foos.example.com", "foos.v1.example.com", "foos.v2.example.com", "bars.example.com"} {
				parsed, err := dsl.ParseResourceName(name)
				if err != nil {
					t.Fatal(err)
				}
				if l.Is(parsed) {
					is = append(is, name)
				}
			}
			if diff := cmp.Diff(tt.is, is); diff != "" {
				t.Errorf("its names (-want +got):\n%s", diff)
			}
		})
	}
}
