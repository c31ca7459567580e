// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached/wire"
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
	byTree, err := wire.NewCaching(config, s.Client())
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
		h := mustOpen(t, set, src, handle(func(e Event) {
			select {
			case changed <- struct{}{}:
			default:
			}
		}))
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

// TestObjectsThatComeAsBytes holds that an informer takes objects that are not decoded, each under its own key: in a streamed list, in pages, and
// in events.
func TestObjectsThatComeAsBytes(t *testing.T) {
	object := func(name string, version int) string {
		return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Foo","metadata":{"name":%q,"namespace":"default","uid":"uid-%s","resourceVersion":"%d"},"spec":{"n":%d}}`, name, name, version, version)
	}
	event := func(kind, object string) string { return `{"type":"` + kind + `","object":` + object + "}\n" }
	end := `{"apiVersion":"example.com/v1","kind":"Foo","metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}`
	for name, streamed := range map[string]bool{"a streamed list": true, "pages": false} {
		t.Run(name, func(t *testing.T) {
			listed := make(chan struct{})
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				q := r.URL.Query()
				w.Header().Set("Content-Type", "application/json")
				switch {
				case q.Get("sendInitialEvents") != "" && !streamed:
					w.WriteHeader(http.StatusUnprocessableEntity)
					return
				case q.Get("sendInitialEvents") != "":
					_, _ = io.WriteString(w, event("ADDED", object("a", 1))+event("ADDED", object("b", 2))+event("ADDED", object("c", 3))+event("BOOKMARK", end))
				case q.Get("watch") == "" && q.Get("continue") == "":
					_, _ = io.WriteString(w, `{"apiVersion":"example.com/v1","kind":"FooList","metadata":{"resourceVersion":"5","continue":"more"},"items":[`+object("a", 1)+`,`+object("b", 2)+`]}`)
					return
				case q.Get("watch") == "":
					_, _ = io.WriteString(w, `{"apiVersion":"example.com/v1","kind":"FooList","metadata":{"resourceVersion":"5"},"items":[`+object("c", 3)+`]}`)
					return
				}
				_ = http.NewResponseController(w).Flush()
				select {
				case <-listed: // a handler that is added later is given what is there then
				case <-r.Context().Done():
					return
				}
				_, _ = io.WriteString(w, event("MODIFIED", object("b", 6))+event("DELETED", object("a", 7))+event("ADDED", object("d", 8)))
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}))
			defer s.CloseClientConnections()
			client, err := wire.NewCaching(&rest.Config{Host: s.URL, QPS: -1}, s.Client())
			if err != nil {
				t.Fatal(err)
			}
			set, events := New(Settings{Dynamic: client}), make(chan string, 100)
			defer set.Close()
			h := mustOpen(t, set, Source{GVR: foos}, handle(func(e Event) {
				n, _, _ := unstructured.NestedInt64(e.Object.Tree().Object, "spec", "n")
				events <- fmt.Sprintf("%s %s %d", e.Kind, e.Key, n)
			}))
			var got []string
			for i := range 6 {
				if i == 3 {
					close(listed)
				}
				got = append(got, <-events)
			}
			slices.Sort(got[:3])
			wantSame(t, []string{"added default/a 1", "added default/b 2", "added default/c 3", "updated default/b 6", "deleted default/a 7", "added default/d 8"}, got)
			if h.Len() != 3 {
				t.Errorf("the cache has %d objects", h.Len())
			}
		})
	}
}
