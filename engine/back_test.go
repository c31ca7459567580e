// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
	"github.com/handwerk-dev/handwerk/engine/ops"
)

// errLooping ends a loop that would else go on without time passing.
var errLooping = dsl.Permanent(errors.New("called more than 100 times"))

// sized keeps as many ConfigMaps as the object's size says, and deletes the others.
func sized(ctx context.Context, r *dsl.Request) error {
	size, _, _ := unstructured.NestedInt64(r.Object.Object, "spec", "size")
	wanted := map[string]bool{}
	for i := range size {
		name := fmt.Sprintf("web-%d", i)
		wanted[name] = true
		if _, err := r.Children.Apply(ctx, map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"of": r.Object.GetName()},
		}); err != nil {
			return err
		}
	}
	found, err := r.Children.List(configMaps)
	for _, o := range found {
		if err == nil && !wanted[o.GetName()] {
			err = r.Children.Delete(ctx, configMaps, o.GetName())
		}
	}
	return err
}

// fill makes the cluster's versions grow.
func (s *stage) fill(name string, n int) {
	s.t.Helper()
	for i := range n {
		s.Create(fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: %s-%d}}`, name, i))
	}
}

// uids are those of the ConfigMaps, by name.
func (s *stage) uids() map[string]types.UID {
	out := map[string]types.UID{}
	for _, o := range s.List(configMaps, "default") {
		out[o.GetName()] = o.GetUID()
	}
	return out
}

// reportsSize writes the size into the status.
func reportsSize(_ context.Context, r *dsl.Request) error {
	size, _, _ := unstructured.NestedInt64(r.Object.Object, "spec", "size")
	r.Patch.SetStatus("seen", size)
	return nil
}

// TestVersionsThatGoBack holds what happens after etcd was set back to an older snapshot, when no watch tells of it.
func TestVersionsThatGoBack(t *testing.T) {
	keeps := func(foo *dsl.Resource, j *journal) {
		foo.Owns(configMaps)
		foo.OnReconcile("copies", j.Note("copies", sized))
	}
	// beats writes at each tick, from what the cache has.
	beats := func(foo *dsl.Resource, j *journal) {
		n := int64(0)
		foo.Every(10*time.Second, "beat", j.Note("beat", func(ctx context.Context, r *dsl.Request) error {
			if n++; n > 100 {
				return errLooping
			}
			r.Patch.SetStatus("beats", n)
			return reportsSize(ctx, r)
		}))
	}
	for how, resume := range map[string]func(s *stage){
		"the watches go on":    func(*stage) {},
		"watches are resumed":  func(s *stage) { s.CutWatches() },
		"the server is behind": func(s *stage) { s.HoldWatches(); s.CutWatches() },
	} {
		scenarios(t, map[string]scenario{
			"a pass that meets an older object backs off, " + how: {beats, func(s *stage) {
				s.begin()
				s.Advance(time.Minute)
				restore := s.Backup()
				s.size(2)
				s.fill("later", 100)
				s.Forget()
				restore()
				resume(s)
				s.Advance(45 * time.Second)
				if calls, writes := len(s.Take()), len(s.Writes()); calls > 10 || writes > 10 {
					s.t.Errorf("%d calls and %d writes in 45 s", calls, writes)
				}
				s.ReleaseWatches()
				s.Advance(time.Minute)
				if seen, _, _ := unstructured.NestedInt64(s.web().Object, "status", "seen"); seen != 1 {
					s.t.Errorf("the status says size %d, want that of the restored object", seen)
				}
				well(s)
			}},
			"no child is deleted because its kind is listed before its owner, " + how: {keeps, func(s *stage) {
				s.begin()
				s.size(17)
				s.Settle()
				before := s.uids()
				s.Advance(time.Minute)
				restore := s.Backup()
				s.size(1)
				s.fill("later", 100)
				s.Settle()
				if left := s.uids(); len(left) != 1 {
					s.t.Fatalf("%d children are left, want 1", len(left))
				}
				restore()
				resume(s)
				s.Advance(5 * time.Second)
				s.ReleaseWatches()
				s.ExpireWatches(configMaps)
				s.Advance(time.Minute)
				if diff := cmp.Diff(before, s.uids()); diff != "" {
					s.t.Errorf("children (-want +got):\n%s", diff)
				}
				s.size(2)
				s.Advance(10 * time.Second)
				if left := s.uids(); len(left) != 2 {
					s.t.Errorf("%d children are left, want 2", len(left))
				}
				well(s)
			}},
		})
	}
	scenarios(t, map[string]scenario{
		"no child is applied before its kind is listed again": {keeps, func(s *stage) {
			s.begin()
			s.size(9)
			s.Settle()
			before := s.uids()
			s.Advance(time.Minute)
			restore := s.Backup()
			s.size(1)
			s.fill("later", 100)
			s.Settle()
			busy := apierrors.NewServiceUnavailable("it is busy")
			lists, watches := s.FailWhile("list", configMaps, busy), s.FailWhile("watch", configMaps, busy)
			restore()
			s.ExpireWatches()
			s.Writes()
			s.Advance(30 * time.Second)
			if got := s.Writes(); len(got) > 0 { // the cache lacks children that are there
				s.t.Errorf("writes %v before the children are listed", got)
			}
			lists()
			watches()
			s.Advance(time.Minute)
			if got := s.Writes(); slices.ContainsFunc(got, func(w enginetest.Write) bool { return w.Resource == "configmaps" }) {
				s.t.Errorf("writes %v", got)
			}
			if diff := cmp.Diff(before, s.uids()); diff != "" {
				s.t.Errorf("children (-want +got):\n%s", diff)
			}
			well(s)
		}},
		"a process stays ready, and says that it lists again": {keeps, func(s *stage) {
			s.begin()
			s.Advance(time.Minute)
			restore := s.Backup()
			s.size(2)
			s.fill("later", 100)
			s.Settle()
			s.DelayNext("watch", configMaps, 10*time.Second)
			restore()
			s.ExpireWatches(foos, configMaps)
			s.Advance(5 * time.Second)
			const want = "[+]child/foos.v1.example.com/configmaps.v1 ok: listing again, because the API server's versions have gone back"
			s.Settle()
			all := s.Process.Engine().Ready()
			if !slices.ContainsFunc(all, func(c ops.Check) bool { return c.String() == want }) || slices.ContainsFunc(all, func(c ops.Check) bool { return c.State != ops.Pass }) {
				s.t.Errorf("it says %v, want %s", all, want)
			}
			s.Advance(10 * time.Second)
			well(s)
		}},
		"a write that was forgotten is not waited for": {keeps, func(s *stage) {
			s.begin()
			restore := s.Backup()
			s.fill("later", 100)
			s.HoldWatches(configMaps)
			s.size(2)
			s.Called("copies update")
			restore()
			s.ExpireWatches(foos)
			s.ReleaseWatches(configMaps)
			s.Advance(5 * time.Second)
			s.Forget()
			s.size(3)
			s.Advance(5 * time.Second)
			if got := s.Take(); !slices.Contains(got, "copies update") || len(s.uids()) != 3 {
				s.t.Errorf("the calls were %v, and there are %d children", got, len(s.uids()))
			}
			well(s)
		}},
		"a change that gets the version of one that was forgotten is news": {
			func(foo *dsl.Resource, j *journal) { foo.OnReconcile("see", j.Note("see", reportsSize)) },
			func(s *stage) {
				s.begin()
				restore := s.Backup()
				s.size(2)
				s.Forget()
				version := s.web().GetResourceVersion()
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: later}}`) // the cache is at its version
				s.Forget()
				s.HoldWatches(foos)
				restore()
				s.size(4)
				s.size(5)
				if got := s.web().GetResourceVersion(); got != version {
					s.t.Fatalf("the object has version %s, want %s again", got, version)
				}
				s.ExpireWatches(foos)
				s.Advance(2 * time.Minute)
				if seen, _, _ := unstructured.NestedInt64(s.web().Object, "status", "seen"); seen != 5 {
					s.t.Errorf("the status says size %d, want 5", seen)
				}
			},
		},
	})
}
