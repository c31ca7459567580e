// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package resources_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestIndexesStayExact holds that an index has what the cache shows: whatever is gone leaves nothing behind.
func TestIndexesStayExact(t *testing.T) {
	const bars = "bars.v1.example.org"
	bar := func(name, key string) string {
		return fmt.Sprintf(`{apiVersion: example.org/v1, kind: Bar, metadata: {name: %s, labels: {in: "yes"}}, data: {for: "%s", v: %s}}`, name, key, name)
	}
	overBars := func(s *scene.Stage) *dsl.IndexSpec { return s.Operator.Index("owners", bars, scene.ValuesByOwner) }
	serve := func(s *scene.Stage) { s.Serve(kit.Resource{Name: bars, Kind: "Bar"}) }
	scene.PlayAll(t, map[string]scene.Scenario{
		"through a gap of the watch": {Operator: scene.LooksUp(dsl.Reconcile), Play: func(s *scene.Stage) {
			s.Create(settingsMap("a", "", "x", "1"))
			s.Create(settingsMap("b", "", "x", "2"))
			s.Create(settingsMap("c", "", "x", "3"))
			s.LaunchWithIndex()
			s.Create(scene.FooWithRef("web", "x"))
			s.Called("web create: 1 2 3")
			s.HoldWatches(scene.ConfigMaps)
			s.Delete(scene.ConfigMaps, "default", "a")
			setData(s, "b", "v", "8")
			s.Delete(scene.ConfigMaps, "default", "c")
			s.Create(settingsMap("c", "", "x", "9"))
			s.ExpireWatches(scene.ConfigMaps)
			s.ReleaseWatches(scene.ConfigMaps)
			s.Advance(time.Minute)
			wantLastCall(s, "web index: 8 9")
		}},
		"a selector that flips": {Operator: scene.LooksUp(dsl.Reconcile), Play: func(s *scene.Stage) {
			serve(s)
			x := overBars(s)
			x.LabelSelector = "in=yes"
			s.Create(bar("a", "x"))
			s.Launch()
			s.Create(scene.FooWithRef("web", "x"))
			s.Called("web create: a")
			flip := func(to string) {
				s.Update(bars, "default", "a", func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"in": to}) })
			}
			flip("no")
			s.Called("web index:")
			flip("yes")
			s.Called("web index: a")
		}},
		"labels, and a filter, that flip": {Operator: scene.LooksUp(dsl.Reconcile), Play: func(s *scene.Stage) {
			s.Create(settingsMap("a", "red", "x", "1"))
			s.LaunchWithIndex(dsl.Label("app", "red"), dsl.When(func(r *dsl.Subject) (bool, error) {
				v, _, err := unstructured.NestedString(r.Object.Object, "data", "v")
				return v != "0", err
			}))
			s.Create(scene.FooWithRef("web", "x"))
			s.Called("web create: 1")
			setData(s, "a", "app", "blue")
			s.Called("web index:")
			setData(s, "a", "app", "red")
			s.Called("web index: 1")
			setData(s, "a", "v", "0")
			s.Called("web index:")
		}},
		"a resource that goes and comes": {Operator: scene.LooksUp(dsl.Reconcile), Play: func(s *scene.Stage) {
			overBars(s)
			s.Launch()
			wantIndexHealth(s, "index", "not served")
			s.Create(scene.FooWithRef("web", "x"))
			s.Called("web create:") // without a CRD there are no objects
			serve(s)
			s.Create(bar("a", "x"))
			s.Advance(15 * time.Second)
			wantLastCall(s, "web index: a")
			wantIndexHealth(s, "index", "")
			s.Unserve(bars)
			s.Advance(time.Minute)
			wantLastCall(s, "web index:")
			serve(s)
			s.Create(bar("b", "x"))
			s.Advance(15 * time.Second)
			wantLastCall(s, "web index: b")
		}},
		"nothing is held of objects that are gone": {Operator: scene.LooksUp(dsl.Reconcile), Play: func(s *scene.Stage) {
			metrics := ops.NewMetrics()
			s.Operator.Index("owners", scene.ConfigMaps, scene.ValuesByOwner)
			s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Metrics = metrics })
			read := func(keys int) {
				s.T.Helper()
				s.Settle()
				want := "# HELP handwerk_index_read Keys of the index that handlers have read and are woken by, counted for each of their objects.\n" +
					"# TYPE handwerk_index_read gauge\n" + fmt.Sprintf("handwerk_index_read{index=\"owners\"} %d\n", keys)
				if err := testutil.GatherAndCompare(metrics.Registry(), strings.NewReader(want), "handwerk_index_read"); err != nil {
					s.T.Error(err)
				}
			}
			for i := range 5 {
				s.Create(scene.FooWithRef(fmt.Sprint("web-", i), fmt.Sprint("x", i)))
			}
			read(5)
			for i := range 4 {
				s.Delete(scene.Foos, "default", fmt.Sprint("web-", i))
			}
			read(1)
			s.HoldWatches(scene.Foos)
			s.Delete(scene.Foos, "default", "web-4")
			s.ExpireWatches(scene.Foos)
			s.ReleaseWatches(scene.Foos)
			s.Advance(time.Minute)
			read(0)
		}},
		"a namespace that goes and comes": {Operator: scene.LooksUp(dsl.Reconcile), Play: func(s *scene.Stage) {
			s.Operator.Scope.Namespaces = []string{"default", "team-*"}
			s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: team-a}}`)
			s.Create(settingsMap("team-a/a", "", "x", "1"))
			s.Create(settingsMap("other/a", "", "x", "7"))
			s.LaunchWithIndex()
			s.Create(scene.FooWithRef("web", "x"))
			s.Called("web create: 1")
			s.Delete("namespaces.v1", "", "team-a")
			s.Advance(time.Minute)
			wantLastCall(s, "web index:")
			s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: team-b}}`)
			s.Create(settingsMap("team-b/a", "", "x", "2"))
			s.Advance(time.Minute)
			wantLastCall(s, "web index: 2")
		}},
	})
}

// TestAnIndexThatCannotBeReadHoldsUpItsReadersAlone holds that an index that cannot be seen whole holds up those alone that
// read it.
func TestAnIndexThatCannotBeReadHoldsUpItsReadersAlone(t *testing.T) {
	both := func(foo *dsl.Resource, j *kit.Journal) {
		scene.LooksUp(dsl.Reconcile)(foo, j)
		foo.OnReconcile("free", j.Note("free"))
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"for a missing right": {Operator: both, Play: func(s *scene.Stage) {
			s.Create(settingsMap("a", "", "x", "1"))
			s.Forbid("list", scene.ConfigMaps)
			s.LaunchWithIndex()
			wantIndexHealth(s, "index", "forbidden: list")
			s.Create(scene.FooWithRef("web", "x"))
			s.Called("web create: error", "free create")
			s.Advance(10 * time.Minute)
			s.Called()
			s.Allow("list", scene.ConfigMaps)
			s.Advance(15 * time.Second)
			s.Called("web create: 1")
			wantIndexHealth(s, "index", "")
		}},
		"for a namespace that is not listed yet": {Operator: both, Play: func(s *scene.Stage) {
			s.Operator.Scope.Namespaces = []string{"default", "team-*"}
			s.LaunchWithIndex()
			s.DelayNext("watch", scene.ConfigMaps, time.Minute)
			s.HoldWatches("namespaces") // the listing is to have the ConfigMap
			s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: team-a}}`)
			s.Create(settingsMap("team-a/a", "", "x", "1"))
			s.ReleaseWatches("namespaces")
			s.Settle()
			s.Create(scene.FooWithRef("web", "x"))
			s.Called("web create: error", "free create")
			s.Advance(2 * time.Minute)
			s.Called("web create: 1")
		}},
		"in a filter, which is asked when it can be read": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("see", j.Note("see"), dsl.When(func(s *dsl.Subject) (bool, error) {
					_, err := dsl.Index[string, any](s, "owners")
					return err == nil, err
				}))
			}, Play: func(s *scene.Stage) {
				s.Forbid("list", scene.ConfigMaps)
				s.LaunchWithIndex()
				s.Create(scene.Web)
				s.Advance(10 * time.Minute)
				s.Called()
				if said := s.Events(); len(said) > 0 {
					s.T.Errorf("Events %v about what passes", said)
				}
				s.Allow("list", scene.ConfigMaps)
				s.Advance(15 * time.Second)
				s.Called("see create")
			}},
		"an index that there is not": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("see", func(_ context.Context, r *dsl.Request) error {
					_, err := dsl.Index[string, any](r, "nobodys")
					j.Add(fmt.Sprint(dsl.IsPermanent(err), " ", err))
					return err
				})
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called(`true reading index nobodys: there is no index "nobodys"`)
			}},
	})
}
