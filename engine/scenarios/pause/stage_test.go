// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pause_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// What a person writes on an object.
const (
	pausedKey    = "op.handwerk.dev/paused"
	deletionsKey = "op.handwerk.dev/paused-deletions"
)

// pausedWeb is web with the annotation.
const pausedWeb = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, annotations: {` + pausedKey + `: looking}}, spec: {size: 1}}`

// annotate sets annotations of web; an empty value takes one off.
func annotate(s *scene.Stage, notes map[string]string) {
	s.T.Helper()
	s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
		all := maps.Clone(o.GetAnnotations())
		if all == nil {
			all = map[string]string{}
		}
		for key, value := range notes {
			if all[key] = value; value == "" {
				delete(all, key)
			}
		}
		o.SetAnnotations(all)
	})
	s.Settle()
}

// way is a way to pause web.
type way struct {
	pause, resume func(*scene.Stage)
	// message is what the condition says; empty where there is none. Check is what /readyz?verbose says after a minute.
	message, reason, check string
}

// pauseOperator pauses the operator, as operator pause does, with further data.
func pauseOperator(s *scene.Stage, more ...string) {
	s.T.Helper()
	s.Settle()
	s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: op-paused, namespace: ops}, data: {` + strings.Join(append(more, "reason: looking", "by: alice"), ", ") + `}}`)
	s.Settle()
}

// pauseNamespace sets the annotations of a namespace.
func pauseNamespace(s *scene.Stage, name string, notes map[string]string) {
	s.T.Helper()
	s.Settle()
	if s.Get("namespaces.v1", "", name) == nil {
		s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + name + `}}`)
	}
	s.Update("namespaces.v1", "", name, func(o *unstructured.Unstructured) { o.SetAnnotations(notes) })
	s.Settle()
}

// resumeOperator ends that.
func resumeOperator(s *scene.Stage) {
	s.T.Helper()
	s.Settle() // the order of events of two resources is not defined
	s.Delete(scene.ConfigMaps, scene.OpsNamespace, "op-paused")
	s.Settle()
}

// ofOps are the settings of a process in that namespace.
func ofOps(e *engine.Settings) { e.Namespace = scene.OpsNamespace }

// inOps gives the operator its namespace.
func inOps(s *scene.Stage) {
	s.T.Helper()
	s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: ops}}`)
	s.Adjust = append(s.Adjust, ofOps)
}

// ways are all ways, by their names.
func ways() map[string]way {
	return map[string]way{
		"an annotation of the object": {
			pause:   func(s *scene.Stage) { annotate(s, map[string]string{pausedKey: "looking"}) },
			resume:  func(s *scene.Stage) { annotate(s, map[string]string{pausedKey: ""}) },
			message: "Operator op: looking", reason: "Annotation",
			check: "paused/foos.v1.example.com/default/web ok: for 1m0s: paused: looking",
		},
		"an annotation of the namespace": {
			pause:   func(s *scene.Stage) { pauseNamespace(s, "default", map[string]string{pausedKey: "looking"}) },
			resume:  func(s *scene.Stage) { pauseNamespace(s, "default", nil) },
			message: "Operator op: namespace default is paused: looking", reason: "Namespace",
			check: "paused/namespace/default ok: namespace default is paused: looking",
		},
		"the ConfigMap of operator pause": {
			pause: func(s *scene.Stage) { pauseOperator(s) }, resume: resumeOperator,
			check: "paused ok: the operator is paused by alice: looking",
		},
	}
}

// checks returns the lines of /readyz?verbose that say something, and fails the test if one is a fault.
func checks(s *scene.Stage) (out []string) {
	s.T.Helper()
	s.Settle()
	for _, c := range s.Process.Engine().Ready() {
		if c.State != ops.Pass {
			s.T.Errorf("a fault: %s", c)
		}
		if c.Message != "" {
			out = append(out, c.String())
		}
	}
	return out
}

// play is a story that is told for each way.
type play struct {
	operator func(*dsl.Resource, *kit.Journal)
	play     func(s *scene.Stage, w way)
}

// playAll plays each story for each way, with Foos that have conditions.
func playAll(t *testing.T, all map[string]play) {
	t.Helper()
	for how, w := range ways() {
		for name, one := range all {
			t.Run(how+"/"+name, func(t *testing.T) {
				t.Helper()
				kit.Run(t, func(t *testing.T, c *kit.Cluster) {
					c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
					c.Update(scene.CRDs, "", "foos.example.com", scene.AddConditions)
					s := scene.NewStage(t, c)
					s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) { one.operator(foo, &s.Journal) })
					inOps(s)
					one.play(s, w)
				})
			})
		}
	}
}

// watches declares a daemon that notes its beginning and why it ends.
func watches(foo *dsl.Resource, j *kit.Journal) {
	foo.Daemon("watch", func(ctx context.Context, r *dsl.DaemonRequest) error {
		j.Add("begins")
		<-ctx.Done()
		j.Add("ends: " + string(r.Stop()))
		return ctx.Err()
	})
}

// everyMinute declares a timer.
func everyMinute(foo *dsl.Resource, j *kit.Journal) {
	foo.On([]dsl.Cause{dsl.Timer}, "tick", j.Note("tick"), dsl.At(scene.WithoutJitter(dsl.Timing{Every: time.Minute})))
}

// minutes returns so many lines of that timer.
func minutes(n int) (out []string) {
	for range n {
		out = append(out, "tick timer")
	}
	return out
}

// runsForAnHour declares a machine whose first state lasts an hour at most.
func runsForAnHour(foo *dsl.Resource, _ *kit.Journal) {
	foo.Machine(dsl.Machine{States: []dsl.State{
		{Name: "Running", Stay: &dsl.Stay{AtMost: time.Hour, Then: "Failed"}}, {Name: "Failed", Terminal: true, Failed: true},
	}})
}

// value returns data.value of the ConfigMap web.
func value(s *scene.Stage) any {
	return scene.ValueAt(s.Get(scene.ConfigMaps, "default", "web"), "data.value")
}

// keepsValue declares a handler that keeps that value.
func keepsValue(foo *dsl.Resource, _ *kit.Journal) {
	foo.Owns(scene.ConfigMaps)
	foo.OnReconcile("keep", func(ctx context.Context, r *dsl.Request) error {
		_, err := r.Children.Apply(ctx, scene.ConfigMapWithValue("default", fmt.Sprint(scene.SizeOf(r.Object))))
		return err
	})
}
