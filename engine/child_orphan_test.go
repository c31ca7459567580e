// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

// leavesMap declares a handler that makes a ConfigMap which stays when its owner is deleted, when the object is new or its size changes.
func leavesMap(foo *dsl.Resource, _ *journal) {
	foo.Owns(configMaps)
	foo.On([]dsl.Cause{dsl.Create, dsl.Update}, "keep", func(ctx ctx, r *dsl.Request) error {
		if r.Object.GetName() != "web" {
			return nil
		}
		_, err := r.Children.Apply(ctx, settings("default", "x"), dsl.ChildSpec{Handler: "keep", Name: "settings", OnDelete: dsl.OrphanChild})
		return err
	}, dsl.Field("spec.size"))
	notesColor(foo)
}

// leftMap checks that web is gone, and that its ConfigMap is there and free: the garbage collector takes one that is tied.
func (s *stage) leftMap() {
	s.t.Helper()
	s.gone()
	switch o := s.Get(configMaps, "default", "web"); {
	case o == nil:
		s.t.Error("the child is gone")
	case len(o.GetOwnerReferences())+len(o.GetLabels())+len(o.GetAnnotations()) > 0:
		s.t.Errorf("the child is tied still: %v", o.Object["metadata"])
	}
}

// held checks that web is there.
func (s *stage) held() {
	s.t.Helper()
	if s.Settle(); s.web() == nil {
		s.t.Error("the owner is gone, and its child is tied still")
	}
}

// unlist takes the record off web, as a version left it that had no record of such children.
func (s *stage) unlist() {
	s.t.Helper()
	s.Update(foos, "default", "web", func(o *unstructured.Unstructured) {
		notes := o.GetAnnotations()
		delete(notes, record)
		o.SetAnnotations(notes)
	})
}

// TestAnOrphanThatNoCacheShowsStays holds that a child with an owner reference which is to stay is released before its owner goes,
// whatever the cache of its kind shows.
func TestAnOrphanThatNoCacheShowsStays(t *testing.T) {
	// lost makes the child with a request whose answer is lost, while the watch of its kind brings nothing.
	lost := func(s *stage) {
		s.Launch()
		s.LoseNext("patch", configMaps)
		s.HoldWatches(configMaps)
		s.Create(web)
		s.Settle()
		s.value("default", "x")
	}
	// taken makes the child in a first process, and has a second one take over whose cache does not show it.
	taken := func(s *stage) {
		s.Operator.Settings.LeaderElection = dsl.LeaderElection{Mode: dsl.LeaderLease, Namespace: "default"}
		first := s.Start(s.Operator)
		s.Advance(time.Second)
		s.Process = s.Start(s.Operator)
		s.Advance(time.Second)
		s.HoldWatches(configMaps)
		s.Create(web)
		s.value("default", "x")
		first.Kill()
		s.Advance(time.Minute)
	}
	// restored deletes the owner after etcd was set back to a time when the child was there, which the cache shows as gone.
	restored := func(s *stage) {
		s.Advance(time.Minute)
		restore := s.Backup()
		s.Delete(configMaps, "default", "web")
		s.fill("later", 100)
		s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: later}, spec: {size: 0}}`) // its kind's cache is ahead, too
		s.Advance(time.Minute)
		s.Settle()
		restore()
		s.HoldWatches(configMaps)
		s.CutWatches(configMaps)
		s.remove()
		s.Advance(20 * time.Second)
	}
	leaves := func(foo *dsl.Resource, j *journal) {
		leavesMap(foo, j)
		foo.OnDelete("leave", succeeds)
	}
	shown := func(s *stage) {
		s.t.Helper()
		s.ReleaseWatches(configMaps)
		s.Advance(2 * time.Minute)
		s.leftMap()
	}
	scenarios(t, map[string]scenario{
		"its creation got no answer": {leavesMap, func(s *stage) {
			lost(s)
			s.remove()
			s.held()
			s.Advance(20 * time.Second)
			s.held()
			shown(s)
		}},
		"its creation got no answer, and the next attempt finds it": {leavesMap, func(s *stage) {
			lost(s)
			s.Advance(time.Minute)
			s.remove()
			s.held()
			shown(s)
		}},
		"its creation got no answer in the deletion, and its handler says nothing of it": {func(foo *dsl.Resource, _ *journal) {
			foo.Owns(configMaps)
			foo.On([]dsl.Cause{dsl.Create, dsl.Delete}, "keep", func(ctx ctx, r *dsl.Request) error {
				if r.Cause == dsl.Delete {
					_, _ = r.Children.Apply(ctx, settings("default", "x"), dsl.ChildSpec{Handler: "keep", Name: "settings", OnDelete: dsl.OrphanChild})
				}
				return nil
			})
		}, func(s *stage) {
			s.begin()
			s.LoseNext("patch", configMaps)
			s.HoldWatches(configMaps)
			s.remove()
			s.held()
			s.Advance(20 * time.Second)
			s.held()
			shown(s)
		}},
		"a next leader has a cache that lags behind": {leavesMap, func(s *stage) {
			taken(s)
			s.remove()
			s.Advance(20 * time.Second)
			s.held()
			shown(s)
		}},
		"a next leader has a cache that lags behind, and writes the owner first": {leavesMap, func(s *stage) {
			taken(s)
			s.set("blue", "spec", "color")
			s.Settle()
			if got := s.web().GetAnnotations()["example.com/color"]; got != "blue" {
				s.t.Errorf("the object was last written for color %q", got)
			}
			s.remove()
			s.Advance(20 * time.Second)
			s.held()
			shown(s)
		}},
		"an earlier version made it, and no watch of its kind is open": {leavesMap, func(s *stage) {
			s.Operator.Settings.LeaderElection = dsl.LeaderElection{Mode: dsl.LeaderLease, Namespace: "default"}
			first := s.Start(s.Operator)
			s.Advance(time.Second)
			s.Process = s.Start(s.Operator)
			s.Advance(time.Second)
			end := s.FailWhile("watch", configMaps, enginetest.ErrRefused)
			s.CutWatches(configMaps)
			s.Create(web)
			s.value("default", "x")
			first.Kill()
			s.unlist()
			s.Advance(time.Minute)
			s.remove()
			s.Advance(20 * time.Second)
			s.held()
			end()
			s.Advance(2 * time.Minute)
			s.leftMap()
		}},
		"the cache is that of before a restored backup": {leavesMap, func(s *stage) {
			s.begin()
			restored(s)
			shown(s)
		}},
		"the cache is that of before a restored backup, and a handler holds the owner, too": {leaves, func(s *stage) {
			s.begin()
			restored(s)
			shown(s)
		}},
		"its owner and the child are made again from a backup": {leaves, func(s *stage) {
			s.begin()
			owner, lost := s.web(), s.Get(configMaps, "default", "web")
			s.Delete(configMaps, "default", "web")
			s.Settle()
			s.set("blue", "spec", "color")
			s.Settle()
			if got := s.listed(); got != "" {
				s.t.Fatalf("the record lists %s", got)
			}
			s.HoldWatches(configMaps)
			lost.SetResourceVersion("")
			s.Create(lost.Object)
			s.Update(foos, "default", "web", func(o *unstructured.Unstructured) { o.SetAnnotations(owner.GetAnnotations()) })
			s.Settle()
			s.remove()
			s.Advance(20 * time.Second)
			s.held()
			shown(s)
		}},
		"the cache is that of before a restored backup, and an earlier version made the child": {leavesMap, func(s *stage) {
			s.begin()
			s.unlist()
			restored(s)
			shown(s)
		}},
	})
}

// TestTheRecordOfOrphans holds when a child with an owner reference which is to stay comes to be in its owner's record, and what that costs.
func TestTheRecordOfOrphans(t *testing.T) {
	const made = "patch configmaps default/"
	named := func(name string) dsl.DesiredChild {
		return dsl.DesiredChild{
			ChildSpec: dsl.ChildSpec{Handler: "keep", Name: name, OnDelete: dsl.OrphanChild},
			Object:    map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}},
		}
	}
	many := func(enter bool) func(*dsl.Resource, *journal) {
		return func(foo *dsl.Resource, _ *journal) {
			foo.Owns(configMaps)
			foo.OnReconcile("keep", func(ctx ctx, r *dsl.Request) error {
				size, _ := dsl.MustParsePath("spec.size").In(r.Object.Object)
				var all []dsl.DesiredChild
				for i := range size.(int64) + 1 {
					all = append(all, named(fmt.Sprint("c", i)))
				}
				if enter {
					if err := r.Children.Enter(ctx, all...); err != nil {
						return err
					}
				}
				for _, c := range all {
					if _, err := r.Children.Apply(ctx, c.Object, c.ChildSpec); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	quiet := func(s *stage) {
		s.t.Helper()
		s.Forget()
		s.Process.Restart()
		s.Advance(time.Hour)
		s.Wrote()
	}
	lists := func(s *stage, want string) {
		s.t.Helper()
		if got := s.listed(); got != want {
			s.t.Errorf("the record lists %s, want %s", got, want)
		}
	}
	scenarios(t, map[string]scenario{
		"the first comes with the finalizer": {leavesMap, func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Wrote(recorded, "patch configmaps default/web", recorded) // the last one is the book's
			lists(s, `["/ConfigMap/default/web"]`)
			s.set("blue", "spec", "color")
			s.Settle()
			lists(s, `["/ConfigMap/default/web"]`)
			quiet(s)
		}},
		"each other one costs a write": {many(false), func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Wrote(recorded, made+"c0", recorded, made+"c1")
			s.size(2)
			s.Wrote(recorded, made+"c2")
			quiet(s)
		}},
		"those that are entered together cost one": {many(true), func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Wrote(recorded, made+"c0", made+"c1")
			s.size(2)
			s.Wrote(recorded, made+"c2")
			quiet(s)
		}},
		"that of an earlier version comes with the next write": {leavesMap, func(s *stage) {
			s.begin()
			s.Process.Kill()
			s.unlist()
			quiet(s)
			s.size(2)
			s.Wrote(recorded)
			lists(s, `["/ConfigMap/default/web"]`)
			s.remove()
			s.Settle()
			s.leftMap()
		}},
		"that of an earlier version that is entered with others comes with the next write": {many(true), func(s *stage) {
			s.begin()
			s.Process.Kill()
			s.unlist()
			quiet(s)
			s.size(2)
			s.Wrote(recorded, made+"c2")
			if got := s.listed(); strings.Count(got, "/ConfigMap/default/") != 3 {
				s.t.Errorf("the record lists %s", got)
			}
			quiet(s)
		}},
		"that of an earlier version comes with the finalizer": {leavesMap, func(s *stage) {
			s.begin()
			s.Process.Kill()
			s.unlist()
			s.Update(foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			s.Forget()
			s.size(2)
			s.Process.Restart()
			s.Wrote(recorded, recorded)
			lists(s, `["/ConfigMap/default/web"]`)
		}},
		"that of an earlier version is left behind without it": {leavesMap, func(s *stage) {
			s.begin()
			s.unlist()
			s.remove()
			s.Settle()
			s.leftMap()
		}},
		"one that somebody deletes leaves it with the next write": {leavesMap, func(s *stage) {
			s.begin()
			s.Delete(configMaps, "default", "web")
			s.Settle()
			s.set("blue", "spec", "color")
			s.Settle()
			lists(s, "")
			s.finalizers()
		}},
	})
}
