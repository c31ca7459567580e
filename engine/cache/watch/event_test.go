// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

func TestEventsOfAllKinds(t *testing.T) {
	for _, profile := range []dsl.CacheProfile{dsl.CacheCompact, dsl.CacheMetadata, dsl.CacheLive} {
		t.Run(string(profile), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				set := New(s.settings())
				defer set.Close()
				s.put("a", "1")
				s.put("b", "2")
				var j journal
				mustOpen(t, set, Source{GVR: foos, Form: cached.Form{Profile: profile}}, &j)
				wantEvents(t, &j, "added default/a 1 initial", "added default/b 2 initial")
				s.put("c", "3")
				s.put("a", "1")
				s.drop("b")
				s.put("b", "4")
				wantEvents(t, &j, "added default/c 3", "updated default/a 1", "deleted default/b 2", "added default/b 4")
			})
		})
	}
}

func TestWhatAGapHidIsDelivered(t *testing.T) {
	tests := map[string]struct {
		unseen func(*server)
		want   []string
	}{
		"nothing happened": {func(*server) {}, nil},
		"a creation":       {func(s *server) { s.put("c", "3") }, []string{"added default/c 3"}},
		"a change":         {func(s *server) { s.put("a", "1") }, []string{"updated default/a 1"}},
		"a deletion":       {func(s *server) { s.drop("a") }, []string{"deleted default/a 1"}},
		"a deletion and a creation under the same name": {
			func(s *server) { s.drop("a"); s.put("a", "4") },
			[]string{"deleted default/a 1", "added default/a 4"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				set := New(s.settings())
				defer set.Close()
				s.put("a", "1")
				s.put("b", "2")
				var j journal
				mustOpen(t, set, Source{GVR: foos}, &j)
				j.take()
				s.gap(func() { tt.unseen(s) })
				wantEvents(t, &j, tt.want...)
				wantCounts(t, s, 2, 2, 1)
			})
		})
	}
}

func TestEventsCarryTheObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		set := New(s.settings())
		defer set.Close()
		var j journal
		mustOpen(t, set, Source{GVR: foos}, &j)
		synctest.Wait()
		s.put("a", "1", spec("red"))
		s.put("a", "1", spec("blue"))
		synctest.Wait()
		s.gap(func() { s.drop("a"); s.put("a", "2", spec("green")) })
		s.gap(func() { s.drop("a") })
		synctest.Wait()

		var got []string
		for _, e := range j.events {
			got = append(got, e.Kind.String()+" "+colour(e.Old)+colour(e.Object))
		}
		want := []string{"added red", "updated redblue", "deleted blue", "added green", "deleted green"}
		wantSame(t, want, got)
	})
}

func spec(colour string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { u.Object["spec"] = map[string]any{"colour": colour} }
}

func colour(o *cached.Object) string {
	if o == nil {
		return ""
	}
	text, _, _ := unstructured.NestedString(o.Tree().Object, "spec", "colour")
	return text
}

// A server that closes a stream after its time, or a restart of it, is no reason to list again.
func TestAPoliteEndOfTheStreamIsFollowedByAWatchAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		set := New(s.settings())
		defer set.Close()
		var j journal
		h := mustOpen(t, set, Source{GVR: foos}, &j)
		synctest.Wait()
		advance(time.Minute)
		s.cut(nil)
		wantCounts(t, s, 1, 2, 1)
		s.put("a", "1")
		wantEvents(t, &j, "added default/a 1")
		if fault := h.State().Fault; fault != nil {
			t.Errorf("the state shows %v", fault)
		}
	})
}

func TestATombstoneWithoutAnObjectHasTheKey(t *testing.T) {
	var j journal
	drain := sink{&j, &observer{}}
	drain.OnDelete(cache.DeletedFinalStateUnknown{Key: "default/a"})
	drain.OnDelete(nil)
	drain.OnAdd(nil, false)
	drain.OnUpdate(nil, nil)
	if len(j.events) != 1 {
		t.Fatalf("%d events, want the tombstone's", len(j.events))
	}
	e := j.events[0]
	wantSame(t, []any{Deleted, key("a"), "a", "default"}, []any{e.Kind, e.Key, e.Object.GetName(), e.Object.GetNamespace()})
	if e.Object.Tree() != nil {
		t.Errorf("its tree is %v", e.Object.Tree())
	}
}

func TestABrokenStreamIsFollowedByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		set := New(s.settings())
		defer set.Close()
		var j journal
		mustOpen(t, set, Source{GVR: foos}, &j)
		synctest.Wait()
		s.cut(apierrors.NewInternalError(errors.New("no route to host")))
		s.put("a", "1")
		advance(time.Minute)
		wantEvents(t, &j, "added default/a 1")
	})
}
