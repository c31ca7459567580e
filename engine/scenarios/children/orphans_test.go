// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// leavesMap declares a handler that makes a ConfigMap which stays when its owner is deleted, when the object is new or its size changes.
func leavesMap(foo *dsl.Resource, _ *kit.Journal) {
	foo.Owns(scene.ConfigMaps)
	foo.On([]dsl.Cause{dsl.Create, dsl.Update}, "keep", func(ctx context.Context, r *dsl.Request) error {
		if r.Object.GetName() != "web" {
			return nil
		}
		_, err := r.Children.Apply(ctx, scene.ConfigMapWithValue("default", "x"), dsl.ChildSpec{Handler: "keep", Name: "settings", OnDelete: dsl.OrphanChild})
		return err
	}, dsl.Field("spec.size"))
	notesColor(foo)
}

// wantOrphan checks that web is gone, and that its ConfigMap is there and free: the garbage collector takes one that is tied.
func wantOrphan(s *scene.Stage) {
	s.T.Helper()
	s.WantGone()
	switch o := s.Get(scene.ConfigMaps, "default", "web"); {
	case o == nil:
		s.T.Error("the child is gone")
	case len(o.GetOwnerReferences())+len(o.GetLabels())+len(o.GetAnnotations()) > 0:
		s.T.Errorf("the child is tied still: %v", o.Object["metadata"])
	}
}

// wantOwnerHeld checks that web is there.
func wantOwnerHeld(s *scene.Stage) {
	s.T.Helper()
	if s.Settle(); s.Web() == nil {
		s.T.Error("the owner is gone, and its child is tied still")
	}
}

// removeRecord takes the record off web.
func removeRecord(s *scene.Stage) {
	s.T.Helper()
	s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
		notes := o.GetAnnotations()
		delete(notes, scene.RecordAnnotation)
		o.SetAnnotations(notes)
	})
}

// showConfigMaps has the caches catch up with the ConfigMaps.
func showConfigMaps(s *scene.Stage) {
	s.T.Helper()
	s.ReleaseWatches(scene.ConfigMaps)
	s.Advance(2 * time.Minute)
	wantOrphan(s)
}

// TestAnOrphanThatNoCacheShowsStays holds that a child with an owner reference which is to stay is released before its owner
// goes, whatever the cache of its kind shows.
func TestAnOrphanThatNoCacheShowsStays(t *testing.T) {
	// lost makes the child with a request whose answer is lost, while the watch of its kind brings nothing.
	lost := func(s *scene.Stage) {
		s.Launch()
		s.LoseNext("patch", scene.ConfigMaps)
		s.HoldWatches(scene.ConfigMaps)
		s.Create(scene.Web)
		s.Settle()
		wantValue(s, "default", "x")
	}
	// taken makes the child in a first process, and has a second one take over whose cache does not show it.
	taken := func(s *scene.Stage) {
		s.Operator.Settings.LeaderElection = dsl.LeaderElection{Mode: dsl.LeaderLease, Namespace: "default"}
		first := s.Start(s.Operator)
		s.Advance(time.Second)
		s.Process = s.Start(s.Operator)
		s.Advance(time.Second)
		s.HoldWatches(scene.ConfigMaps)
		s.Create(scene.Web)
		wantValue(s, "default", "x")
		first.Kill()
		s.Advance(time.Minute)
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"its creation got no answer": {Operator: leavesMap, Play: func(s *scene.Stage) {
			lost(s)
			s.Remove()
			wantOwnerHeld(s)
			s.Advance(20 * time.Second)
			wantOwnerHeld(s)
			showConfigMaps(s)
		}},
		"its creation got no answer, and the next attempt finds it": {Operator: leavesMap, Play: func(s *scene.Stage) {
			lost(s)
			s.Advance(time.Minute)
			s.Remove()
			wantOwnerHeld(s)
			showConfigMaps(s)
		}},
		"its creation got no answer in the deletion, and its handler says nothing of it": {Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.On([]dsl.Cause{dsl.Create, dsl.Delete}, "keep", func(ctx context.Context, r *dsl.Request) error {
				if r.Cause == dsl.Delete {
					_, _ = r.Children.Apply(ctx, scene.ConfigMapWithValue("default", "x"), dsl.ChildSpec{Handler: "keep", Name: "settings", OnDelete: dsl.OrphanChild})
				}
				return nil
			})
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.LoseNext("patch", scene.ConfigMaps)
			s.HoldWatches(scene.ConfigMaps)
			s.Remove()
			wantOwnerHeld(s)
			s.Advance(20 * time.Second)
			wantOwnerHeld(s)
			showConfigMaps(s)
		}},
		"a next leader has a cache that lags behind": {Operator: leavesMap, Play: func(s *scene.Stage) {
			taken(s)
			s.Remove()
			s.Advance(20 * time.Second)
			wantOwnerHeld(s)
			showConfigMaps(s)
		}},
		"a next leader has a cache that lags behind, and writes the owner first": {Operator: leavesMap, Play: func(s *scene.Stage) {
			taken(s)
			s.Set("blue", "spec", "color")
			s.Settle()
			if got := s.Web().GetAnnotations()["example.com/color"]; got != "blue" {
				s.T.Errorf("the object was last written for color %q", got)
			}
			s.Remove()
			s.Advance(20 * time.Second)
			wantOwnerHeld(s)
			showConfigMaps(s)
		}},
		"the record was lost, and no watch of its kind is open": {Operator: leavesMap, Play: func(s *scene.Stage) {
			s.Operator.Settings.LeaderElection = dsl.LeaderElection{Mode: dsl.LeaderLease, Namespace: "default"}
			first := s.Start(s.Operator)
			s.Advance(time.Second)
			s.Process = s.Start(s.Operator)
			s.Advance(time.Second)
			end := s.FailWhile("watch", scene.ConfigMaps, kit.ErrRefused)
			s.CutWatches(scene.ConfigMaps)
			s.Create(scene.Web)
			wantValue(s, "default", "x")
			first.Kill()
			removeRecord(s)
			s.Advance(time.Minute)
			s.Remove()
			s.Advance(20 * time.Second)
			wantOwnerHeld(s)
			end()
			s.Advance(2 * time.Minute)
			wantOrphan(s)
		}},
	})
}

// TestAnOrphanOfARestoredBackupStays holds the same after a backup was restored.
func TestAnOrphanOfARestoredBackupStays(t *testing.T) {
	// restored deletes the owner after etcd was set back to a time when the child was there, which the cache shows as gone.
	restored := func(s *scene.Stage) {
		s.Advance(time.Minute)
		restore := s.Backup()
		s.Delete(scene.ConfigMaps, "default", "web")
		s.RaiseVersions("later", 100)
		s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: later}, spec: {size: 0}}`) // its kind's cache is ahead, too
		s.Advance(time.Minute)
		s.Settle()
		restore()
		s.HoldWatches(scene.ConfigMaps)
		s.CutWatches(scene.ConfigMaps)
		s.Remove()
		s.Advance(20 * time.Second)
	}
	leaves := func(foo *dsl.Resource, j *kit.Journal) {
		leavesMap(foo, j)
		foo.OnDelete("leave", scene.Succeeds)
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"the cache is that of before a restored backup": {Operator: leavesMap, Play: func(s *scene.Stage) {
			s.Begin()
			restored(s)
			showConfigMaps(s)
		}},
		"the cache is that of before a restored backup, and a handler holds the owner, too": {Operator: leaves, Play: func(s *scene.Stage) {
			s.Begin()
			restored(s)
			showConfigMaps(s)
		}},
		"its owner and the child are made again from a backup": {Operator: leaves, Play: func(s *scene.Stage) {
			s.Begin()
			owner, lost := s.Web(), s.Get(scene.ConfigMaps, "default", "web")
			s.Delete(scene.ConfigMaps, "default", "web")
			s.Settle()
			s.Set("blue", "spec", "color")
			s.Settle()
			if got := listedInRecord(s); got != "" {
				s.T.Fatalf("the record lists %s", got)
			}
			s.HoldWatches(scene.ConfigMaps)
			lost.SetResourceVersion("")
			s.Create(lost.Object)
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetAnnotations(owner.GetAnnotations()) })
			s.Settle()
			s.Remove()
			s.Advance(20 * time.Second)
			wantOwnerHeld(s)
			showConfigMaps(s)
		}},
		"the cache is that of before a restored backup, and the record was lost": {Operator: leavesMap, Play: func(s *scene.Stage) {
			s.Begin()
			removeRecord(s)
			restored(s)
			showConfigMaps(s)
		}},
	})
}

// TestAnOrphanIsRecordedBeforeItCouldBeLost holds when a child with an owner reference which is to stay comes to be in its
// owner's inventory, and what that costs.
func TestAnOrphanIsRecordedBeforeItCouldBeLost(t *testing.T) {
	const made = "patch configmaps default/"
	named := func(name string) dsl.DesiredChild {
		return dsl.DesiredChild{
			ChildSpec: dsl.ChildSpec{Handler: "keep", Name: name, OnDelete: dsl.OrphanChild},
			Object:    map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}},
		}
	}
	many := func(enter bool) func(*dsl.Resource, *kit.Journal) {
		return func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnReconcile("keep", func(ctx context.Context, r *dsl.Request) error {
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
	quiet := func(s *scene.Stage) {
		s.T.Helper()
		s.Forget()
		s.Process.Restart()
		s.Advance(time.Hour)
		s.Wrote()
	}
	lists := func(s *scene.Stage, want string) {
		s.T.Helper()
		if got := listedInRecord(s); got != want {
			s.T.Errorf("the record lists %s, want %s", got, want)
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"the first comes with the finalizer": {Operator: leavesMap, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Wrote(recorded, "patch configmaps default/web", recorded) // the last one is the book's
			lists(s, `["/ConfigMap/default/web"]`)
			s.Set("blue", "spec", "color")
			s.Settle()
			lists(s, `["/ConfigMap/default/web"]`)
			quiet(s)
		}},
		"each other one costs a write": {Operator: many(false), Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Wrote(recorded, made+"c0", recorded, made+"c1")
			s.Resize(2)
			s.Wrote(recorded, made+"c2")
			quiet(s)
		}},
		"those that are entered together cost one": {Operator: many(true), Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Wrote(recorded, made+"c0", made+"c1")
			s.Resize(2)
			s.Wrote(recorded, made+"c2")
			quiet(s)
		}},
		"one that the record lost is entered again when the child is applied": {Operator: many(true), Play: func(s *scene.Stage) {
			s.Begin()
			s.Process.Kill()
			removeRecord(s)
			s.Forget()
			s.Process.Restart()
			s.Wrote(recorded)
			lists(s, `["/ConfigMap/default/c0 keep/c0","/ConfigMap/default/c1 keep/c1"]`)
			quiet(s)
		}},
		"one that the record lost is left behind": {Operator: leavesMap, Play: func(s *scene.Stage) {
			s.Begin()
			removeRecord(s)
			s.Remove()
			s.Settle()
			wantOrphan(s)
		}},
		"one that somebody deletes leaves it with the next write": {Operator: leavesMap, Play: func(s *scene.Stage) {
			s.Begin()
			s.Delete(scene.ConfigMaps, "default", "web")
			s.Settle()
			s.Set("blue", "spec", "color")
			s.Settle()
			lists(s, "")
			s.WantFinalizers()
		}},
	})
}

// TestAChildWhoseOwnerIsDeletedWithoutItIsNotTiedAgain holds that a child whose tie Kubernetes has cut, because somebody deletes its
// owner with --cascade=orphan, stays free, also when the caches show that before they show the deletion.
func TestAChildWhoseOwnerIsDeletedWithoutItIsNotTiedAgain(t *testing.T) {
	spec := dsl.ChildSpec{Handler: "keep", Name: "settings"}
	scene.PlayAll(t, map[string]scene.Scenario{
		"the deletion is not seen yet": {Operator: keeps(&spec, "default"), Play: func(s *scene.Stage) {
			s.Begin()
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/held"}) })
			s.Settle()
			s.Writes()
			s.HoldWatches(scene.Foos)
			s.Delete(scene.Foos, "default", "web")
			s.ChangeConfigMap("default", func(o *unstructured.Unstructured) { o.SetOwnerReferences(nil) })
			s.Advance(time.Minute)
			s.ReleaseWatches(scene.Foos)
			s.Advance(time.Minute)
			s.Wrote()
			if o := s.Get(scene.ConfigMaps, "default", "web"); o == nil || len(o.GetOwnerReferences()) > 0 {
				s.T.Errorf("the child is %v", o)
			}
		}},
		"nobody deletes the owner": {Operator: keeps(&spec, "default"), Play: func(s *scene.Stage) {
			s.Begin()
			s.Writes()
			s.ChangeConfigMap("default", func(o *unstructured.Unstructured) { o.SetOwnerReferences(nil) })
			s.Advance(time.Minute)
			s.Wrote("patch configmaps default/web")
		}},
	})
}
