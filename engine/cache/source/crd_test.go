// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
)

// defined returns the definition of foos, on a server that has their CRD or not, or that answers with an error.
func defined(there bool, fault error) *definition {
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		panic(err)
	}
	client := metadatafake.NewSimpleMetadataClient(scheme)
	client.PrependReactor("get", "customresourcedefinitions", func(clienttesting.Action) (bool, runtime.Object, error) {
		return there || fault != nil, &metav1.PartialObjectMetadata{}, fault // otherwise the client finds nothing
	})
	return &definition{of: &Location{name: dsl.ResourceName{Resource: "foos", Group: "example.com"}}, metadata: client}
}

func TestTheNameOfACRD(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Policy"}
	tests := map[string]struct {
		at   *Location
		want string
	}{
		"a name was declared":                      {&Location{name: dsl.ResourceName{Resource: "foos", Group: "example.com"}}, "foos.example.com"},
		"a kind was declared":                      {&Location{name: dsl.ResourceName{Resource: "guess"}, kind: kind}, "policies.example.com"},
		"the resource of a kind is known":          {&Location{kind: kind, place: place{served: foos("v1"), known: true}}, "foos.example.com"},
		"the resource of a kind was known earlier": {&Location{kind: kind, place: place{served: foos("v1")}}, "policies.example.com"},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			if got := (&definition{of: tt.at}).name(); got != tt.want {
				t.Errorf("the name is %q, want %q", got, tt.want)
			}
		})
	}
}

func TestEventsOfACRD(t *testing.T) {
	const own = "foos.example.com"
	tests := map[string]struct {
		served                 bool
		event                  watch.Event
		there, deleted, change bool
	}{
		"it is created":                              {false, watch.Event{Kind: watch.Added, Key: cache.ObjectName{Name: own}}, true, false, true},
		"it is changed":                              {true, watch.Event{Kind: watch.Updated, Key: cache.ObjectName{Name: own}}, true, false, true},
		"it is deleted":                              {true, watch.Event{Kind: watch.Deleted, Key: cache.ObjectName{Name: own}}, false, true, true},
		"it is deleted before it was served":         {false, watch.Event{Kind: watch.Deleted, Key: cache.ObjectName{Name: own}}, false, false, true},
		"a listing lacks it, which may be incorrect": {true, watch.Event{Kind: watch.Deleted, Unseen: true, Key: cache.ObjectName{Name: own}}, false, false, true},
		"another one is deleted":                     {true, watch.Event{Kind: watch.Deleted, Key: cache.ObjectName{Name: "bars.example.com"}}, false, false, false},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			d := defined(false, nil)
			if tt.served {
				d.of.found(foos("v1"))
			}
			d.seen(tt.event)
			if there, known := d.now(); there != tt.there || known != tt.there {
				t.Errorf("it is there: %v, and that is known: %v", there, known)
			}
			if deleted, change := d.takeDeleted(), d.takeChanged(); deleted != tt.deleted || change != tt.change {
				t.Errorf("it was deleted: %v, and there was an event: %v", deleted, change)
			}
			if d.takeDeleted() || d.takeChanged() {
				t.Error("an event counts twice")
			}
		})
	}
}

func TestWhetherAResourceIsExtinct(t *testing.T) {
	tests := map[string]struct {
		watched, had, bereft bool
		there                bool
		fault                error
		extinct, found       bool
	}{
		"nothing was watched, and there is no CRD":         {extinct: true},
		"nothing was watched, and there is one":            {there: true, found: true},
		"nothing was watched, and the CRD cannot be read":  {fault: errors.New("no answer")},
		"objects are watched, and their CRD is gone":       {watched: true, had: true, extinct: true},
		"objects are watched, and their CRD is there":      {watched: true, had: true, there: true, found: true},
		"objects are watched that never had a CRD":         {watched: true},
		"objects are watched, and their CRD was deleted":   {watched: true, bereft: true, extinct: true},
		"objects are watched, and the CRD cannot be read":  {watched: true, had: true, fault: errors.New("no answer")},
		"the CRD was deleted, and is there again by now":   {watched: true, bereft: true, there: true, found: true},
		"the CRD was deleted, and cannot be read any more": {watched: true, bereft: true, fault: errors.New("no answer")},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			d := defined(tt.there, tt.fault)
			d.there, d.known, d.bereft = tt.had, true, tt.bereft
			if extinct, found := d.extinct(t.Context(), tt.watched); extinct != tt.extinct || found != tt.found {
				t.Errorf("it is extinct: %v, want %v; the CRD is there: %v, want %v", extinct, tt.extinct, found, tt.found)
			}
		})
	}
}
