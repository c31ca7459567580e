// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

// tells notes what a handler is told of what was: its cause, what was, and how many differences there are.
func tells(j *journal) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		was := "nothing is known"
		if r.Old != nil {
			was = fmt.Sprint(r.Old)
		}
		j.Add(fmt.Sprint(r.Cause, " ", was, " ", len(r.Diff)))
		return nil
	}
}

// drop takes a field from web.
func (s *stage) drop(path ...string) {
	s.t.Helper()
	s.Update(foos, "default", "web", func(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, path...) })
}

// TestOldOfNothing holds that a handler which has handled that there was nothing is told so, and how that
// differs from what is there now: after a restart, too.
func TestOldOfNothing(t *testing.T) {
	scenarios(t, map[string]scenario{
		"a field that was not there": {
			func(foo *dsl.Resource, j *journal) { foo.On(both(), "a", tells(j), dsl.Field("spec.note")) },
			func(s *stage) {
				s.begin()
				s.set("x", "spec", "note")
				s.Called("update map[] 1")
				s.drop("spec", "note")
				s.Called("update map[spec:map[note:x]] 1")
				s.set("y", "spec", "note")
				s.Called("update map[] 1")
				s.drop("spec", "note")
				s.Forget()
				s.Process.Restart()
				s.set("z", "spec", "note")
				s.Called("update map[] 1")
			},
		},
		"a field of status beside one of all": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "a", tells(j), dsl.Field("status.phase"))
				foo.On(both(), "b", tells(j))
			},
			func(s *stage) {
				s.begin()
				s.size(2)
				s.Called("update map[spec:map[color:red size:1]] 1")
				s.Process.Restart()
				s.set("Ready", "status", "phase")
				s.Called("update map[] 1")
			},
		},
		"a null below a field": {
			func(foo *dsl.Resource, j *journal) { foo.On(both(), "a", tells(j), dsl.Field("spec.conf")) },
			func(s *stage) {
				s.Launch()
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {conf: {a: null, b: 1}}}`)
				s.Called("create nothing is known 0")
				s.Process.Restart()
				s.Called()
				s.set(map[string]any{"a": nil, "b": int64(2)}, "spec", "conf")
				s.Called("update map[spec:map[conf:map[a:<nil> b:1]]] 1")
			},
		},
		"several fields, one of which goes": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "a", tells(j), dsl.Field("spec.size", "spec.color"))
				foo.On(both(), "b", tells(j), dsl.Field("spec.color", "metadata.labels.x"))
			},
			func(s *stage) {
				s.begin()
				s.drop("spec", "color")
				s.Called("update map[spec:map[color:red size:1]] 1", "update map[spec:map[color:red]] 1")
				s.Process.Restart()
				s.set("red", "spec", "color")
				s.Called("update map[spec:map[size:1]] 1", "update map[] 1")
			},
		},
		"a change that is taken back while its handler fails": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "a", func(c context.Context, r *dsl.Request) error {
					if err := tells(j)(c, r); err != nil || r.Attempt > 1 {
						return err
					}
					if note, _ := dsl.MustParsePath("spec.note").In(r.Object.Object); note != nil {
						return dsl.Temporary(errAgain, time.Hour)
					}
					return nil
				}, dsl.Field("spec.note"))
			},
			func(s *stage) {
				s.begin()
				s.set("x", "spec", "note")
				s.Called("update map[] 1")
				s.drop("spec", "note")
				s.Called("update map[] 0")
			},
		},
		"a level-triggered handler, for which nothing is kept": {
			func(foo *dsl.Resource, j *journal) { foo.OnReconcile("a", tells(j)) },
			func(s *stage) {
				s.begin()
				s.size(2)
				s.Called("update nothing is known 0")
			},
		},
	})
	t.Run("an object of nothing", func(t *testing.T) {
		enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
			s := newStage(t, c)
			s.Operator.Resource(configMaps, func(r *dsl.Resource) { r.On(both(), "a", tells(&s.Journal)) })
			s.Launch()
			s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}`)
			s.Called("create nothing is known 0")
			s.Process.Restart()
			s.Update(configMaps, "default", "web", func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"a": "b"} })
			s.Called("update map[] 1")
		})
	})
}
