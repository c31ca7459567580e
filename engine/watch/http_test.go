// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cached"
)

// busy is an API server that streams one object as a list, and changes it all the time once flood is
// closed.
type busy struct{ flood chan struct{} }

func (b busy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("sendInitialEvents") != "true" {
		http.Error(w, "only streamed lists are expected here", http.StatusTeapot)
		return
	}
	apiVersion, kind := "example.com/v1", "Foo"
	if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
		apiVersion, kind = "meta.k8s.io/v1", "PartialObjectMetadata"
	}
	w.Header().Set("Content-Type", "application/json")
	const line = `{"type":%q,"object":{"apiVersion":%q,"kind":%q,"metadata":{"name":"a","namespace":"default","uid":"1","resourceVersion":"%d",` +
		`"annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"
	fmt.Fprintf(w, line, "ADDED", apiVersion, kind, 1)
	fmt.Fprintf(w, line, "BOOKMARK", apiVersion, kind, 2)
	w.(http.Flusher).Flush()
	select {
	case <-b.flood:
	case <-r.Context().Done():
	}
	for version := 3; r.Context().Err() == nil; version++ {
		fmt.Fprintf(w, line, "MODIFIED", apiVersion, kind, version)
		w.(http.Flusher).Flush()
	}
}

// With a real client the end of a busy stream is a read error, which must not be seen.
func TestStoppingUnderLoadSaysNothing(t *testing.T) {
	flood := make(chan struct{})
	s := httptest.NewServer(busy{flood})
	defer s.Close()
	config := &rest.Config{Host: s.URL, QPS: -1}
	byTree, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	byMetadata, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	var lines log
	set := New(Settings{Dynamic: byTree, Metadata: byMetadata, Log: lines.logger()})
	var handles []*Handle
	var changes []<-chan struct{}
	for i := range 10 {
		src := Source{GVR: foos, Form: cached.Form{Kind: "Foo"}, LabelSelector: fmt.Sprintf("a=%d", i)}
		if i%2 == 1 {
			src.Profile = dsl.CacheMetadata
		}
		changed := make(chan struct{}, 1)
		h := mustOpen(t, set, src, func(e Event) {
			select {
			case changed <- struct{}{}:
			default:
			}
		})
		if !h.WaitSynced(t.Context()) {
			t.Fatal("it was not listed")
		}
		handles, changes = append(handles, h), append(changes, changed)
	}
	close(flood)
	for _, changed := range changes {
		for range 3 {
			<-changed
		}
	}
	for _, h := range handles[:5] {
		h.Close()
	}
	set.Close()
	if got, synced := len(lines.lines), lines.count("source is synced"); got != synced {
		t.Errorf("logged %q", lines.lines)
	}
	for _, h := range handles {
		o, found := h.Object(key("a"))
		if !found || o.Tree().GetKind() != "Foo" || h.State().Fault != nil {
			t.Errorf("%s: found %t, kind %s, state %+v", h.Source().Profile, found, o.Tree().GetKind(), h.State())
		}
	}
}
