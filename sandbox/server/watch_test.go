// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/handwerk-dev/handwerk/sandbox/server"
)

// event is a watch event as text.
type event string

// watch opens a watch. The returned function returns the events since its last call; the last one is "end" if the
// watch has ended.
func (w wire) watch(query string) (events func() []event) {
	w.t.Helper()
	body := w.open(http.MethodGet, inDefault+"?watch=true"+query, "").Body
	w.t.Cleanup(func() { body.Close() })
	got := make(chan event, 10_000)
	go func() {
		defer close(got)
		for lines := json.NewDecoder(body); ; {
			var line struct {
				Type   string
				Object map[string]any
			}
			if lines.Decode(&line) != nil {
				got <- "end"
				return
			}
			a := answer{json: line.Object}
			switch line.Type {
			case "BOOKMARK":
				got <- event("BOOKMARK " + a.meta("resourceVersion") + a.meta("annotations"))
			case "ERROR":
				got <- event(fmt.Sprint("ERROR ", line.Object["code"], " ", a.message()))
			default:
				got <- event(line.Type + " " + a.meta("name"))
			}
		}
	}()
	return func() (out []event) {
		synctest.Wait()
		for len(got) > 0 {
			if e, ok := <-got; ok {
				out = append(out, e)
			}
		}
		return out
	}
}

func TestAWatchBeginsWhereItsClientSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, server.Settings{})
		first := w.put("default", "a", "x").meta("resourceVersion")
		last := w.put("default", "b").meta("resourceVersion")
		for query, want := range map[string][]event{
			"":                                 {"ADDED a", "ADDED b"},
			"&resourceVersion=0":               {"ADDED a", "ADDED b"},
			"&resourceVersion=" + first:        {"ADDED b"},
			"&resourceVersion=" + last:         nil,
			"&labelSelector=part%3Dx":          {"ADDED a"},
			"&fieldSelector=metadata.name%3Db": {"ADDED b"},
			"&allowWatchBookmarks=true":        {"ADDED a", "ADDED b"},
			"&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&allowWatchBookmarks=true":  {"ADDED a", "ADDED b", event("BOOKMARK " + last + "map[k8s.io/initial-events-end:true]")},
			"&resourceVersionMatch=NotOlderThan&sendInitialEvents=true":                           {"ADDED a", "ADDED b"},
			"&resourceVersionMatch=NotOlderThan&sendInitialEvents=false&allowWatchBookmarks=true": nil,
		} {
			if diff := cmp.Diff(want, w.watch(query)()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", query, diff)
			}
		}
	})
}

func TestBookmarksComeWhileNothingChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, server.Settings{Bookmarks: time.Minute})
		version := w.put("default", "a").meta("resourceVersion")
		with, without := w.watch("&allowWatchBookmarks=true&resourceVersion="+version), w.watch("&resourceVersion="+version)
		w.put("kube-system", "elsewhere")
		time.Sleep(2*time.Minute + time.Second)
		if diff := cmp.Diff([]event{"BOOKMARK 4", "BOOKMARK 4"}, with()); diff != "" {
			t.Errorf("a watch that allows bookmarks (-want +got):\n%s", diff)
		}
		if got := without(); got != nil {
			t.Errorf("a watch that does not allow bookmarks gets %v", got)
		}
	})
}

func TestBookmarksBecomeRarer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, server.Settings{Bookmarks: time.Minute, Rarer: true})
		events := w.watch("&allowWatchBookmarks=true&resourceVersion=" + w.put("default", "a").meta("resourceVersion"))
		time.Sleep(14 * time.Minute)
		if got := events(); len(got) != 7 {
			t.Errorf("within 14 minutes, in which seven are due, the last after 12.9 minutes, a watch gets %v", got)
		}
	})
}

func TestAWatchThatIsTooOldOrTooSlowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, server.Settings{History: 5})
		version := w.put("default", "a").meta("resourceVersion")
		slow := w.open(http.MethodGet, inDefault+"?watch=true&resourceVersion="+version, "").Body
		defer slow.Close()
		quick := w.watch("&resourceVersion=" + version)
		for i := range 12 {
			w.put("default", fmt.Sprint("b", i))
			synctest.Wait()
		}
		if got := quick(); len(got) != 12 {
			t.Errorf("a quick watch gets %v", got)
		}
		if n, err := slow.Read(make([]byte, 100)); err == nil {
			t.Errorf("a slow watch goes on with %d bytes", n)
		}
		if diff := cmp.Diff([]event{"ERROR 410 too old resource version: 3 (7)", "end"}, w.watch("&resourceVersion="+version)()); diff != "" {
			t.Errorf("a watch from an old version (-want +got):\n%s", diff)
		}
	})
}

func TestAWatchWithASelectorSeesObjectsComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, server.Settings{})
		version := w.put("default", "a", "x").meta("resourceVersion")
		events := w.watch("&labelSelector=part%3Dx&resourceVersion=" + version)
		for _, part := range []string{"x", "y", "y", "x"} {
			w.send(http.MethodPatch, inDefault+"/a", fmt.Sprintf(`{"metadata":{"labels":{"part":%q}},"data":{"n":"%d"}}`, part, len(part)),
				"Content-Type", "application/merge-patch+json")
		}
		w.send(http.MethodDelete, inDefault+"/a", "")
		if diff := cmp.Diff([]event{"MODIFIED a", "DELETED a", "ADDED a", "DELETED a"}, events()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}
