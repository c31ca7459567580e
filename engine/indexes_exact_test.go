// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
	"github.com/handwerk-dev/handwerk/engine/ops"
)

// TestIndexesStayExact holds that an index has what the cache shows: whatever is gone leaves nothing behind.
func TestIndexesStayExact(t *testing.T) {
	const bars = "bars.v1.example.org"
	bar := func(name, key string) string {
		return fmt.Sprintf(`{apiVersion: example.org/v1, kind: Bar, metadata: {name: %s, labels: {in: "yes"}}, data: {for: "%s", v: %s}}`, name, key, name)
	}
	overBars := func(s *stage) *dsl.IndexSpec { return s.Operator.Index("owners", bars, byOwner) }
	serve := func(s *stage) { s.Serve(enginetest.Resource{Name: bars, Kind: "Bar"}) }
	scenarios(t, map[string]scenario{
		"through a gap of the watch": {looksUp(dsl.Reconcile), func(s *stage) {
			s.Create(settingsMap("a", "", "x", "1"))
			s.Create(settingsMap("b", "", "x", "2"))
			s.Create(settingsMap("c", "", "x", "3"))
			s.indexed()
			s.Create(foo("web", "x"))
			s.Called("web create: 1 2 3")
			s.HoldWatches(configMaps)
			s.Delete(configMaps, "default", "a")
			s.give("b", "v", "8")
			s.Delete(configMaps, "default", "c")
			s.Create(settingsMap("c", "", "x", "9"))
			s.ExpireWatches(configMaps)
			s.ReleaseWatches(configMaps)
			s.Advance(time.Minute)
			last(s, "web index: 8 9")
		}},
		"a selector that flips": {looksUp(dsl.Reconcile), func(s *stage) {
			serve(s)
			x := overBars(s)
			x.LabelSelector = "in=yes"
			s.Create(bar("a", "x"))
			s.Launch()
			s.Create(foo("web", "x"))
			s.Called("web create: a")
			flip := func(to string) {
				s.Update(bars, "default", "a", func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"in": to}) })
			}
			flip("no")
			s.Called("web index:")
			flip("yes")
			s.Called("web index: a")
		}},
		"labels, and a filter, that flip": {looksUp(dsl.Reconcile), func(s *stage) {
			s.Create(settingsMap("a", "red", "x", "1"))
			s.indexed(dsl.Label("app", "red"), dsl.When(func(r *dsl.Subject) (bool, error) {
				v, _, err := unstructured.NestedString(r.Object.Object, "data", "v")
				return v != "0", err
			}))
			s.Create(foo("web", "x"))
			s.Called("web create: 1")
			s.give("a", "app", "blue")
			s.Called("web index:")
			s.give("a", "app", "red")
			s.Called("web index: 1")
			s.give("a", "v", "0")
			s.Called("web index:")
		}},
		"a resource that goes and comes": {looksUp(dsl.Reconcile), func(s *stage) {
			overBars(s)
			s.Launch()
			s.indexHealth("index", "not served")
			s.Create(foo("web", "x"))
			s.Called("web create:") // without a CRD there are no objects
			serve(s)
			s.Create(bar("a", "x"))
			s.Advance(15 * time.Second)
			last(s, "web index: a")
			s.indexHealth("index", "")
			s.Unserve(bars)
			s.Advance(time.Minute)
			last(s, "web index:")
			serve(s)
			s.Create(bar("b", "x"))
			s.Advance(15 * time.Second)
			last(s, "web index: b")
		}},
		"nothing is held of objects that are gone": {looksUp(dsl.Reconcile), func(s *stage) {
			metrics := ops.NewMetrics()
			s.Operator.Index("owners", configMaps, byOwner)
			s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Metrics = metrics })
			read := func(keys int) {
				s.t.Helper()
				s.Settle()
				want := "# HELP handwerk_index_read Keys of the index that handlers have read and are woken by, counted for each of their objects.\n" +
					"# TYPE handwerk_index_read gauge\n" + fmt.Sprintf("handwerk_index_read{index=\"owners\"} %d\n", keys)
				if err := testutil.GatherAndCompare(metrics.Registry(), strings.NewReader(want), "handwerk_index_read"); err != nil {
					s.t.Error(err)
				}
			}
			for i := range 5 {
				s.Create(foo(fmt.Sprint("web-", i), fmt.Sprint("x", i)))
			}
			read(5)
			for i := range 4 {
				s.Delete(foos, "default", fmt.Sprint("web-", i))
			}
			read(1)
			s.HoldWatches(foos)
			s.Delete(foos, "default", "web-4")
			s.ExpireWatches(foos)
			s.ReleaseWatches(foos)
			s.Advance(time.Minute)
			read(0)
		}},
		"a namespace that goes and comes": {looksUp(dsl.Reconcile), func(s *stage) {
			s.Operator.Scope.Namespaces = []string{"default", "team-*"}
			s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: team-a}}`)
			s.Create(settingsMap("team-a/a", "", "x", "1"))
			s.Create(settingsMap("other/a", "", "x", "7"))
			s.indexed()
			s.Create(foo("web", "x"))
			s.Called("web create: 1")
			s.Delete("namespaces.v1", "", "team-a")
			s.Advance(time.Minute)
			last(s, "web index:")
			s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: team-b}}`)
			s.Create(settingsMap("team-b/a", "", "x", "2"))
			s.Advance(time.Minute)
			last(s, "web index: 2")
		}},
	})
}

// TestIndexesThatCannotBeRead holds that an index that cannot be seen whole holds up those alone that read it.
func TestIndexesThatCannotBeRead(t *testing.T) {
	both := func(foo *dsl.Resource, j *journal) {
		looksUp(dsl.Reconcile)(foo, j)
		foo.OnReconcile("free", j.Note("free"))
	}
	scenarios(t, map[string]scenario{
		"for a missing right": {both, func(s *stage) {
			s.Create(settingsMap("a", "", "x", "1"))
			s.Forbid("list", configMaps)
			s.indexed()
			s.indexHealth("index", "forbidden: list")
			s.Create(foo("web", "x"))
			s.Called("web create: error", "free create")
			s.Advance(10 * time.Minute)
			s.Called()
			s.Allow("list", configMaps)
			s.Advance(15 * time.Second)
			s.Called("web create: 1")
			s.indexHealth("index", "")
		}},
		"for a namespace that is not listed yet": {both, func(s *stage) {
			s.Operator.Scope.Namespaces = []string{"default", "team-*"}
			s.indexed()
			s.DelayNext("watch", configMaps, time.Minute)
			s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: team-a}}`)
			s.Create(settingsMap("team-a/a", "", "x", "1"))
			s.Settle()
			s.Create(foo("web", "x"))
			s.Called("web create: error", "free create")
			s.Advance(2 * time.Minute)
			s.Called("web create: 1")
		}},
		"in a filter, which is asked when it can be read": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("see", j.Note("see"), dsl.When(func(s *dsl.Subject) (bool, error) {
					_, err := dsl.Index[string, any](s, "owners")
					return err == nil, err
				}))
			}, func(s *stage) {
				s.Forbid("list", configMaps)
				s.indexed()
				s.Create(web)
				s.Advance(10 * time.Minute)
				s.Called()
				if said := s.Events(); len(said) > 0 {
					s.t.Errorf("Events %v about what passes", said)
				}
				s.Allow("list", configMaps)
				s.Advance(15 * time.Second)
				s.Called("see create")
			}},
		"an object that the function fails for is left out, until it changes": {looksUp(dsl.Reconcile), func(s *stage) {
			s.Create(settingsMap("a", "", "x", "broken"))
			s.Create(settingsMap("b", "", "x", "2"))
			s.Create(settingsMap("c", "", "x", "3"))
			s.indexed()
			s.Create(foo("web", "x"))
			s.Called("web create: 2 3")
			s.indexHealth("indexed", "default/a: not yet")
			s.give("c", "v", "panic")
			s.Called("web index: 2")
			s.indexHealth("indexed", "default/c: panic: no")
			s.give("a", "v", "1")
			s.Called("web index: 1 2")
			s.Delete(configMaps, "default", "c")
			s.Called()
			s.indexHealth("indexed", "")
		}},
		"an index that there is not": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("see", func(_ ctx, r *dsl.Request) error {
					_, err := dsl.Index[string, any](r, "nobodys")
					j.Add(fmt.Sprint(dsl.IsPermanent(err), " ", err))
					return err
				})
			}, func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called(`true reading index nobodys: there is no index "nobodys"`)
			}},
	})
}
