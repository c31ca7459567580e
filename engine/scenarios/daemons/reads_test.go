// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package daemons_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// looksAtOthers is a daemon that notes each minute what it sees beside its object.
func looksAtOthers(v *vigil) dsl.DaemonFunc {
	return func(ctx context.Context, r *dsl.DaemonRequest) error {
		tick := time.NewTicker(time.Minute)
		defer tick.Stop()
		for n := 1; ; n++ {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			children, err := r.Children.List(scene.Deployments)
			if err != nil {
				return err
			}
			owners, err := dsl.Index[string, scene.IndexedValue](r, "owners")
			if err != nil {
				return err
			}
			found, err := owners.Get(r.Object.GetName())
			if err != nil {
				return err
			}
			keys, err := owners.Keys()
			if err != nil {
				return err
			}
			r.Memo.Set("looks", n)
			r.OperatorMemo.Update("looks", func(value any) any { all, _ := value.(int); return all + 1 })
			v.note("children %d, values %v, keys %v", len(children), found, keys)
		}
	}
}

// TestDaemonsReadChildrenIndexesAndMemos holds that they read children, indexes and memos as they are at that moment.
func TestDaemonsReadChildrenIndexesAndMemos(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
		s, v := scene.NewStage(t, c), newVigil(t)
		s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
			foo.Owns(scene.Deployments)
			foo.OnReconcile("child", scene.KeepsDeployment)
			foo.OnField("spec.size", "report", func(_ context.Context, r *dsl.Request) error {
				mine, _ := r.Memo.Get("looks")
				all, _ := r.OperatorMemo.Get("looks")
				v.note("looks %v of %v", mine, all)
				return nil
			})
			foo.Daemon("look", looksAtOthers(v))
		})
		s.LaunchWithIndex()
		s.Create(scene.Web)
		s.Advance(time.Minute)
		v.want("children 1, values [], keys []")
		s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {for: "web other", v: "1"}}`)
		s.Create(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: another}, spec: {}}`) // which has no owner
		s.Advance(time.Minute)
		v.want("children 1, values [{1}], keys [other web]")
		s.Resize(2)
		v.want("looks 2 of 2")
		s.Delete(scene.ConfigMaps, "default", "one")
		s.Advance(time.Minute)
		v.want("children 1, values [], keys []")
		s.Process.Restart()
		s.Advance(time.Minute)
		v.want("children 1, values [], keys []")
		s.Resize(3)
		v.want("looks 1 of 1")
	})
}

// TestADaemonReadsWhilePassesWork holds that both may read and change at the same time.
func TestADaemonReadsWhilePassesWork(t *testing.T) {
	playDaemon(t, func(foo *dsl.Resource, v *vigil) {
		foo.Owns(scene.Deployments)
		foo.OnReconcile("child", func(c context.Context, r *dsl.Request) error {
			r.Memo.Update("n", func(any) any { return scene.SizeOf(r.Object) })
			return scene.KeepsDeployment(c, r)
		})
		foo.Daemon("look", func(ctx context.Context, r *dsl.DaemonRequest) error {
			for {
				select {
				case <-ctx.Done():
					return nil
				case <-r.Changes():
				}
				for range 20 {
					if _, err := r.Children.All(); err != nil {
						return err
					}
					r.Memo.Update("n", func(value any) any { return value })
				}
				n, _ := r.Memo.Get("n")
				v.note("%v", n)
			}
		})
	}, func(s *scene.Stage, v *vigil) {
		s.Begin()
		s.Settle()
		for n := range 10 {
			s.Resize(int64(n + 2))
		}
		s.Advance(time.Minute)
		s.Resize(12)
		s.Settle()
		s.Resize(13) // the daemon sees what the reconcile over the change before has kept, at least
		s.Settle()
		v.mu.Lock()
		defer v.mu.Unlock()
		if n := len(v.lines); n < 3 || v.lines[n-1] != "12" && v.lines[n-1] != "13" {
			s.T.Errorf("the daemon has seen %v", v.lines)
		}
	})
}

// TestActivitiesReadIndexes holds that probes and cleanups do, and that a startup gets an error that says why it cannot.
func TestActivitiesReadIndexes(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
		s, v := scene.NewStage(t, c), newVigil(t)
		reads := func(_ context.Context, r *dsl.Request) error {
			owners, err := dsl.Index[string, scene.IndexedValue](r, "owners")
			if err != nil {
				v.note("%s: %v", r.Handler, err)
				return err
			}
			found, err := owners.Get("web")
			v.note("%s: %v", r.Handler, found)
			if err == nil && r.Handler == "probe" && len(found) == 0 {
				err = fmt.Errorf("there is nothing for web")
			}
			return err
		}
		s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) { foo.OnReconcile("any", scene.Succeeds) })
		s.Operator.OnStartup("begin", func(c context.Context, r *dsl.Request) error { _ = reads(c, r); return nil })
		s.Operator.OnReady("probe", reads)
		s.Operator.OnCleanup("end", reads)
		s.LaunchWithIndex()
		v.want("begin: reading index owners: nothing is watched yet, so indexes have nothing: read them in a handler, a probe or a cleanup")
		if got := scene.CheckNamed(s.Process.Engine().Ready(), "probe/probe"); !strings.Contains(got, "there is nothing for web") {
			t.Errorf("the probe says %q", got)
		}
		s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {for: web, v: "1"}}`)
		s.Settle()
		if got := scene.CheckNamed(s.Process.Engine().Ready(), "probe/probe"); strings.Contains(got, "nothing") {
			t.Errorf("the probe says %q", got)
		}
		v.want("probe: []", "probe: [{1}]")
		_ = s.Process.Stop()
		v.want("end: [{1}]")
	})
}
