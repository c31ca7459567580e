// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestTheRecordCostsFewWrites holds what the record costs, and that it is never in the way.
func TestTheRecordCostsFewWrites(t *testing.T) {
	labelled := dsl.ChildSpec{Handler: "keep", Name: "settings", Ownership: dsl.Labelled}
	operator := keepsInNamespaces(labelled, "elsewhere", "default")
	begin := func(s *scene.Stage) {
		s.CreateElsewhere()
		s.Begin()
	}
	// before takes back what an operator without a record would not have written.
	before := func(s *scene.Stage, change ...func(*unstructured.Unstructured)) {
		s.Process.Kill()
		s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
			notes := o.GetAnnotations()
			delete(notes, scene.RecordAnnotation)
			o.SetAnnotations(notes)
			for _, c := range change {
				c(o)
			}
		})
		s.Forget()
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"it is no news to anybody, and no reason to write again": {Operator: operator, Play: func(s *scene.Stage) {
			begin(s)
			s.Called()
			s.Process.Restart()
			s.Wrote()
			if listedInRecord(s) != `["/ConfigMap/elsewhere/web"]` {
				s.T.Errorf("the record is %s", listedInRecord(s))
			}
		}},
		"children of a lost record are entered by one write": {Operator: operator, Play: func(s *scene.Stage) {
			begin(s)
			s.Resize(2)
			s.Settle()
			uids := []any{wantValue(s, "elsewhere", "x").GetUID(), wantValue(s, "default", "x").GetUID()}
			before(s)
			s.Process.Restart()
			s.Wrote(recorded)
			if now := []any{wantValue(s, "elsewhere", "x").GetUID(), wantValue(s, "default", "x").GetUID()}; fmt.Sprint(now) != fmt.Sprint(uids) {
				s.T.Errorf("they were made again: %v", now)
			}
			s.Process.Restart()
			s.Wrote()
			s.Remove()
			s.Advance(2 * time.Minute)
			s.WantGone()
			if len(s.List(scene.ConfigMaps, "elsewhere"))+len(s.List(scene.ConfigMaps, "default")) > 0 {
				s.T.Error("children are left behind")
			}
		}},
		"a crash while they are entered one by one leaves none behind": {Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnReconcile("make", appliesConfigMaps("elsewhere", labelled, dsl.ChildSpec{Handler: "keep", Name: "more", Ownership: dsl.Labelled}))
		}, Play: func(s *scene.Stage) {
			begin(s)
			before(s)
			s.Advance(time.Minute)
			s.Process.Restart()
			s.Process.CrashAfter(1)
			s.Settle()
			s.Process.Kill()
			s.Forget()
			s.Process.Restart()
			s.Settle()
			if listedInRecord(s) != `["/ConfigMap/elsewhere/more keep/more","/ConfigMap/elsewhere/settings"]` {
				s.T.Errorf("the record is %s", listedInRecord(s))
			}
		}},
		"those that are wanted no more are named, and left alone": {Operator: operator, Play: func(s *scene.Stage) {
			begin(s)
			s.Resize(2)
			s.Settle()
			before(s, func(o *unstructured.Unstructured) { o.Object["spec"] = map[string]any{"size": int64(1)} })
			var mu sync.Mutex
			var lines []string
			s.Process = s.Start(s.Operator, func(e *engine.Settings) {
				e.Log = funcr.New(func(_, line string) {
					mu.Lock()
					defer mu.Unlock()
					lines = append(lines, line)
				}, funcr.Options{})
			})
			s.Settle()
			mu.Lock()
			defer mu.Unlock()
			wantValue(s, "default", "x")
			if !slices.ContainsFunc(lines, func(l string) bool {
				return strings.Contains(l, "left alone") && strings.Contains(l, `"objects"="/ConfigMap/default/web"`)
			}) {
				s.T.Errorf("the log is %s", strings.Join(lines, "\n"))
			}
		}},
		"an object that cannot keep it makes no child": {Operator: operator, Play: func(s *scene.Stage) {
			s.CreateElsewhere()
			s.Launch()
			s.Create(map[string]any{"apiVersion": "example.com/v1", "kind": "Foo", "spec": map[string]any{"size": int64(1)},
				"metadata": map[string]any{"name": "web", "annotations": map[string]any{"note": strings.Repeat("x", 262144-100)}}})
			s.Advance(time.Hour)
			got := s.Take()
			if len(got) != 2 || !strings.Contains(got[1], "entering children of Foo default/web into its inventory: its annotations would have 26") {
				s.T.Errorf("calls %v", got)
			}
			if s.Get(scene.ConfigMaps, "elsewhere", "web") != nil {
				s.T.Error("there is a child")
			}
		}},
		"an object that cannot be written to makes no child": {Operator: operator, Play: func(s *scene.Stage) {
			s.CreateElsewhere()
			s.Launch()
			s.Create(strings.Replace(scene.Web, "size: 1", "size: 0", 1))
			s.Forget()
			s.FailNext("patch", scene.Foos, errNotFound())
			s.Resize(1)
			s.Settle()
			if s.Get(scene.ConfigMaps, "elsewhere", "web") != nil {
				s.T.Error("there is a child")
			}
			s.Advance(time.Minute)
			wantValue(s, "elsewhere", "x")
		}},
		"an answer that is lost loses no child": {Operator: operator, Play: func(s *scene.Stage) {
			begin(s)
			s.LoseNext("patch", scene.ConfigMaps)
			s.HoldWatches(scene.ConfigMaps)
			s.Resize(2)
			s.Settle()
			s.Set(int64(1), "spec", "size")
			s.Settle()
			s.ReleaseWatches(scene.ConfigMaps)
			s.Advance(time.Minute)
			if s.Set("blue", "spec", "color"); s.Get(scene.ConfigMaps, "default", "web") != nil {
				s.Advance(time.Minute)
			}
			if s.Get(scene.ConfigMaps, "default", "web") != nil {
				s.T.Error("what is wanted no more is there")
			}
		}},
	})
}
