// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

func names(objects []*cached.Object) []string {
	out := []string{}
	for _, o := range objects {
		out = append(out, o.GetName())
	}
	slices.Sort(out)
	return out
}

// held is the object as a cache holds it whole.
// ownerLabel is the label by which objects name their owner in these tests.
const ownerLabel = "op.handwerk.dev/owner"

func held(t *testing.T, u *unstructured.Unstructured) *cached.Object {
	t.Helper()
	transformer, err := new(cached.Compressor).NewTransformer(cached.Form{Owner: ownerLabel}, foos.GroupVersion(), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	o, err := transformer.Transform(u)
	if err != nil {
		t.Fatal(err)
	}
	return o.(*cached.Object)
}

func ownedByUID(uid string, controller bool) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		u.SetOwnerReferences(append(u.GetOwnerReferences(), metav1.OwnerReference{
			APIVersion: "example.com/v1", Kind: "Parent", Name: "p-" + uid, UID: types.UID(uid), Controller: &controller,
		}))
	}
}

func TestHandlesReadTheCache(t *testing.T) {
	for _, profile := range []dsl.CacheProfile{dsl.CacheCompact, dsl.CacheMetadata, dsl.CacheLive} {
		t.Run(string(profile), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				set := New(s.settings())
				defer set.Close()
				h := mustOpen(t, set, Source{GVR: foos, Form: cached.Form{Profile: profile}}, ignore)
				synctest.Wait()
				s.put("a", "1", ownedByUID("p1", true))
				s.put("b", "2", ownedByUID("p0", false), ownedByUID("p1", true))
				s.put("c", "3", ownedByUID("p1", false))
				s.put("d", "4", ownedByUID("p2", true))
				s.put("e", "5")
				synctest.Wait()

				if o, found := h.Object(key("b")); !found || o.GetUID() != "2" {
					t.Errorf("b is found: %t, with uid %q", found, o.GetUID())
				}
				if o, found := h.Object(key("x")); found || o != nil {
					t.Errorf("x is found: %v", o)
				}
				wantSame(t, []string{"a", "b", "c", "d", "e"}, names(h.Objects()))
				wantSame(t, 5, h.Len())
				wantSame(t, []string{"a", "b"}, names(h.OwnedBy("p1")))
				wantSame(t, []string{}, names(h.OwnedBy("p0")))
				wantSame(t, []string{}, names(h.OwnedBy("")))

				s.put("a", "1", ownedByUID("p2", true))
				s.drop("b")
				synctest.Wait()
				wantSame(t, []string{}, names(h.OwnedBy("p1")))
				wantSame(t, []string{"a", "d"}, names(h.OwnedBy("p2")))
			})
		})
	}
}

// TestOwnersByLabel holds that objects are found by the label that names their owner, as it changes.
func TestOwnersByLabel(t *testing.T) {
	const label = ownerLabel
	tree := func(name string, labels map[string]any) *cached.Object {
		meta := map[string]any{"name": name, "annotations": map[string]any{label: "p1"}}
		if labels != nil {
			meta["labels"] = labels
		}
		return held(t, &unstructured.Unstructured{Object: map[string]any{"metadata": meta}})
	}
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{byOwner: ownerBuckets})
	wants := func(owner string, want ...string) {
		t.Helper()
		wantSame(t, append([]string{}, want...), names(ownedBy(index, owner)))
	}
	for _, o := range []*cached.Object{tree("a", map[string]any{label: "p1"}), tree("b", map[string]any{label: "p2", "x": "p1"}), tree("c", nil)} {
		if err := index.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	wants("p1", "a")
	wants("p2", "b")
	wants("")
	for _, o := range []*cached.Object{tree("a", nil), tree("c", map[string]any{label: "p1"})} {
		if err := index.Update(o); err != nil {
			t.Fatal(err)
		}
	}
	wants("p1", "c")
}

func TestOwnersThatShareABucketDoNotShareChildren(t *testing.T) {
	const owners = buckets / 2
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{byOwner: ownerBuckets})
	s := newServer()
	uid := func(i int) string { return fmt.Sprintf("7f3ad3c2-2c11-4b5e-8c6e-%012d", i) }
	for i := range owners {
		if err := index.Add(held(t, s.put(fmt.Sprint(i), fmt.Sprint(i), ownedByUID(uid(i), true)))); err != nil {
			t.Fatal(err)
		}
	}
	if used := len(index.ListIndexFuncValues(byOwner)); used == owners {
		t.Fatal("each owner has a bucket of its own")
	}
	for i := range owners {
		owned := ownedBy(index, uid(i))
		if len(owned) != 1 || string(owned[0].Controller()) != uid(i) {
			t.Fatalf("owner %s has the children %v", uid(i), names(owned))
		}
	}
}

func TestWaitSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a", "1")
		s.set(forbidden, nil)
		set := New(s.settings())
		defer set.Close()
		release := make(chan struct{})
		h := mustOpen(t, set, Source{GVR: foos}, handle(func(Event) { <-release }))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if h.WaitSynced(ctx) || ctx.Err() == nil {
			t.Error("the wait did not end with its context")
		}

		s.set(nil, nil)
		advance(time.Minute)
		if !h.State().Synced || h.Synced() {
			t.Errorf("source synced: %t, handle synced: %t; want true, and false while the callback runs", h.State().Synced, h.Synced())
		}
		close(release)
		if !h.WaitSynced(t.Context()) || !h.Synced() {
			t.Errorf("the wait ended, synced: %t", h.Synced())
		}
	})
}

func TestWaitSyncedEndsWithTheHandle(t *testing.T) {
	tests := map[string]func(*Set, *Handle){
		"when it is closed, the last one": func(_ *Set, h *Handle) { h.Close() },
		"when the set is closed":          func(s *Set, _ *Handle) { s.Close() },
		"when it is closed and another is not": func(s *Set, h *Handle) {
			mustOpen(t, s, Source{GVR: foos}, ignore)
			h.Close()
		},
	}
	for name, end := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				s.set(forbidden, nil)
				set := New(s.settings())
				defer set.Close()
				h := mustOpen(t, set, Source{GVR: foos}, ignore)
				ended := make(chan bool, 1)
				go func() { ended <- h.WaitSynced(t.Context()) }()
				synctest.Wait()
				end(set, h)
				if <-ended {
					t.Error("it counts as synced")
				}
			})
		})
	}
}

func TestCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer() // at version 100
		s.set(forbidden, nil)
		set := New(s.settings())
		defer set.Close()
		h := mustOpen(t, set, Source{GVR: foos}, ignore)
		synctest.Wait()
		want := func(version string, want bool) {
			t.Helper()
			synctest.Wait()
			if got := h.CaughtUp(version); got != want {
				t.Errorf("at %q caught up with %q: %t, want %t", h.ResourceVersion(), version, got, want)
			}
		}
		want("1", false)
		want("opaque", true)

		s.set(nil, nil)
		advance(time.Minute)
		want("99", true)
		want("100", true)
		want("101", false)
		want("1000", false)
		want("opaque", true)
		want("", true)

		s.put("a", "1")
		want("101", true)
		want("102", false)
		s.drop("a")
		want("102", true)
		want("103", false)
		s.version = 200
		s.send(apiwatch.Bookmark, s.bookmark(""))
		want("200", true)
		want("201", false)
		s.gap(func() { s.put("b", "2") })
		want("201", true)
	})
}

func TestSelects(t *testing.T) {
	tests := map[string]struct {
		src  Source
		key  cache.ObjectName
		set  map[string]string
		want bool
	}{
		"everything":                           {Source{}, key("a"), nil, true},
		"an object without a namespace":        {Source{}, cache.NewObjectName("", "a"), nil, true},
		"the namespace":                        {Source{Namespace: "default"}, key("a"), nil, true},
		"not another namespace":                {Source{Namespace: "other"}, key("a"), nil, false},
		"the label":                            {Source{LabelSelector: "tier=gold"}, key("a"), map[string]string{"tier": "gold"}, true},
		"not another label":                    {Source{LabelSelector: "tier=gold"}, key("a"), map[string]string{"tier": "tin"}, false},
		"not without the label":                {Source{LabelSelector: "tier"}, key("a"), nil, false},
		"one of a set":                         {Source{LabelSelector: "tier in (gold,tin)"}, key("a"), map[string]string{"tier": "tin"}, true},
		"the name":                             {Source{FieldSelector: "metadata.name=a"}, key("a"), nil, true},
		"not another name":                     {Source{FieldSelector: "metadata.name=b"}, key("a"), nil, false},
		"any name but one":                     {Source{FieldSelector: "metadata.name!=b"}, key("a"), nil, true},
		"any namespace but one":                {Source{FieldSelector: "metadata.namespace!=default"}, key("a"), nil, false},
		"not what only the server knows":       {Source{FieldSelector: "spec.nodeName=n"}, key("a"), nil, false},
		"nor what only the server knows to be": {Source{FieldSelector: "spec.nodeName!=n"}, key("a"), nil, false},
		"not when only one of two holds": {
			Source{FieldSelector: "metadata.name=a", LabelSelector: "tier=gold"}, key("a"), nil, false,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			set := New(s.settings())
			defer set.Close()
			tt.src.GVR = foos
			h := mustOpen(t, set, tt.src, ignore)
			if got := h.Selects(tt.key, tt.set); got != tt.want {
				t.Errorf("selects is %t, want %t", got, tt.want)
			}
		})
	}
}

// TestLacks: what a cache does not have is lacking only where the cache would have it.
func TestLacks(t *testing.T) {
	gold := map[string]string{"tier": "gold"}
	for name, tt := range map[string]struct {
		src  Source
		key  cache.ObjectName
		set  map[string]string
		want bool
	}{
		"one that is not there":      {Source{}, key("b"), nil, true},
		"one that is there":          {Source{}, key("a"), nil, false},
		"one of another namespace":   {Source{Namespace: "other"}, key("b"), nil, false},
		"one without the label":      {Source{LabelSelector: "tier=gold"}, key("b"), nil, false},
		"one that has it":            {Source{LabelSelector: "tier=gold"}, key("b"), gold, true},
		"one that is there, by name": {Source{Form: cached.Form{Profile: dsl.CacheLive}}, key("a"), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				set := New(s.settings())
				defer set.Close()
				s.put("a", "1")
				tt.src.GVR = foos
				s.set(forbidden, nil)
				h := mustOpen(t, set, tt.src, ignore)
				synctest.Wait()
				if h.Lacks(tt.key, tt.set) {
					t.Error("it is lacking before the first listing")
				}
				s.set(nil, nil)
				advance(retryMost)
				if got := h.Lacks(tt.key, tt.set); got != tt.want {
					t.Errorf("lacks is %t, want %t", got, tt.want)
				}
			})
		})
	}
	if (*Handle)(nil).Lacks(key("a"), nil) {
		t.Error("an unwatched field is lacking")
	}
}

func TestHandleSourceHasDefaults(t *testing.T) {
	s := newServer()
	set := New(s.settings())
	defer set.Close()
	h := mustOpen(t, set, Source{GVR: foos, Form: cached.Form{Keep: "spec.a", Markers: "m/"}}, ignore)
	wantSame(t, Source{GVR: foos, Form: cached.Form{Profile: dsl.CacheCompact, Keep: "spec.a", Markers: "m/"}}, h.Source())
	h = mustOpen(t, set, Source{GVR: foos, Form: cached.Form{Profile: dsl.CacheLive, Keep: "spec.a", Markers: "m/"}}, ignore)
	wantSame(t, Source{GVR: foos, Form: cached.Form{Profile: dsl.CacheLive}}, h.Source())
}
