// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"maps"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

const replicasets = "replicasets.v1.apps"

// TestControllersThatCopyAnnotations holds that an object which carries the state of another one is new,
// and that nobody fights with who copies it there, as the Deployment controller does at each look.
func TestControllersThatCopyAnnotations(t *testing.T) {
	enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
		s := newStage(t, c)
		for name, id := range map[string]string{deployments: "deployment", replicasets: "set"} {
			s.Operator.Resource(name, func(r *dsl.Resource) { r.On(both(), id, s.Note(id)) })
		}
		s.Launch()
		s.Create(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1, selector: {matchLabels: {a: b}}}}`)
		s.Called("deployment create")
		copied := func() map[string]string { return s.Get(deployments, "default", "web").GetAnnotations() }
		set := &unstructured.Unstructured{}
		set.SetAPIVersion("apps/v1")
		set.SetKind("ReplicaSet")
		set.SetName("web-1")
		set.SetAnnotations(copied())
		set.Object["spec"] = map[string]any{"replicas": int64(1)}
		s.Create(set)
		s.Called("set create")
		s.Process.Writes()
		for range 10 {
			s.Update(replicasets, "default", "web-1", func(o *unstructured.Unstructured) {
				annotations := o.GetAnnotations()
				if annotations == nil {
					annotations = map[string]string{}
				}
				maps.Copy(annotations, copied())
				o.SetAnnotations(annotations)
			})
			s.Advance(100 * time.Millisecond)
		}
		s.Called()
		if writes := s.Process.Writes(); len(writes) > 2 {
			t.Errorf("%d writes while a controller copied annotations ten times: %v", len(writes), writes)
		}
		s.Update(replicasets, "default", "web-1", func(o *unstructured.Unstructured) { o.Object["spec"] = map[string]any{"replicas": int64(2)} })
		s.Called("set update")
	})
}

// export is web as kubectl get -o yaml shows it and an editor leaves it, to be made anew.
func (s *stage) export() *unstructured.Unstructured {
	s.t.Helper()
	s.Settle()
	o := s.web()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "finalizers"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	return o
}

// released is edges without what holds objects.
func released(foo *dsl.Resource, j *journal) {
	foo.OnCreate("made", j.Note("made"))
	foo.OnUpdate("changed", olds(j))
}

// TestObjectsMadeFromOthers holds that an object which was made from the text of another one, a copy, a
// restore, gets its create handlers, whatever that one had come to.
func TestObjectsMadeFromOthers(t *testing.T) {
	scenarios(t, map[string]scenario{
		"a copy under another name": {released, func(s *stage) {
			s.begin()
			o := s.export()
			o.SetName("second")
			s.Create(o)
			s.Called("made create")
			s.Process.Restart()
			s.Called()
		}},
		"a copy in another namespace": {released, func(s *stage) {
			s.begin()
			o := s.export()
			o.SetNamespace("other")
			s.Create(o)
			s.Called("made create")
		}},
		"a copy with another spec, whose next change is one against its own": {released, func(s *stage) {
			s.begin()
			o := s.export()
			o.SetName("second")
			o.Object["spec"] = map[string]any{"size": int64(5)}
			s.Create(o)
			s.Called("made create")
			s.Update(foos, "default", "second", func(o *unstructured.Unstructured) { o.Object["spec"] = map[string]any{"size": int64(6)} })
			s.Called("update map[spec:map[size:5]] [change spec.size 5 6]")
		}},
		"a copy that was made before the operator came": {released, func(s *stage) {
			s.begin()
			stop(s)
			o := s.export()
			o.SetName("second")
			s.Create(o)
			s.Process.Restart()
			s.Called("made create")
		}},
		"one that is restored under its name": {released, func(s *stage) {
			s.begin()
			o := s.export()
			s.remove()
			s.Create(o)
			s.Called("made create")
			s.Process.Restart()
			s.Called()
		}},
		"one that is restored under its name while the operator is away": {released, func(s *stage) {
			s.begin()
			o := s.export()
			stop(s)
			s.remove()
			s.Create(o)
			s.Process.Restart()
			s.Called("made create")
		}},
		"a copy of one whose handler had failed for good": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnCreate("made", j.Note("made", fails(dsl.Permanent(errAgain)), succeeds))
			},
			func(s *stage) {
				s.begin()
				o := s.export()
				o.SetName("second")
				s.Create(o)
				s.Called("made create")
			},
		},
		"a copy of one whose handler is to be tried in an hour": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnCreate("made", j.Note("made", temporary(time.Hour), succeeds))
			},
			func(s *stage) {
				s.begin()
				o := s.export()
				o.SetName("second")
				s.Create(o)
				s.Called("made create")
			},
		},
	})
}

// replace is kubectl replace with an export of web.
func (s *stage) replace(export *unstructured.Unstructured) {
	s.t.Helper()
	s.Update(foos, "default", "web", func(o *unstructured.Unstructured) {
		o.Object["spec"] = export.DeepCopy().Object["spec"]
		o.SetLabels(export.GetLabels())
		o.SetAnnotations(export.GetAnnotations())
	})
}

// TestObjectsThatAreReplaced is law 1 for an object whose state goes back, or away, with its spec.
func TestObjectsThatAreReplaced(t *testing.T) {
	views := func(foo *dsl.Resource, j *journal) {
		foo.OnCreate("made", j.Note("made"))
		foo.OnUpdate("changed", j.Note("changed"))
		foo.OnField("spec", "spec", j.Note("spec"))
		foo.OnField("spec.size", "sized", j.Note("sized"))
		foo.OnField("spec.color", "colored", j.Note("colored"))
	}
	bare := func(o *unstructured.Unstructured, size int64) {
		o.SetAnnotations(nil)
		o.Object["spec"] = map[string]any{"size": size, "color": "red"}
	}
	scenarios(t, map[string]scenario{
		"by an older one: what has changed since is a change back": {views, func(s *stage) {
			s.begin()
			old := s.export()
			s.size(2)
			s.Called("changed update", "spec update", "sized update")
			s.replace(old)
			s.Called("changed update", "spec update", "sized update")
			s.Advance(time.Hour)
			s.Called()
			s.Process.Restart()
			s.Called()
		}},
		"by an older one, and then by the newer one again": {views, func(s *stage) {
			s.begin()
			first := s.export()
			s.size(2)
			s.Forget()
			second := s.export()
			s.replace(first)
			s.Called("changed update", "spec update", "sized update")
			s.replace(second)
			s.Called("changed update", "spec update", "sized update")
		}},
		"by an older one while the operator is away: who looks at the whole spec runs once more": {views, func(s *stage) {
			s.begin()
			old := s.export()
			s.size(2)
			s.Forget()
			stop(s)
			s.replace(old)
			s.Process.Restart()
			s.Called("changed update", "spec update")
			s.Advance(time.Hour)
			s.Called()
			s.Process.Restart()
			s.Called()
		}},
		"by an older one with another spec while the operator is away: who looks at what differs runs": {views, func(s *stage) {
			s.begin()
			old := s.export()
			s.size(2)
			s.Forget()
			stop(s)
			old.Object["spec"] = map[string]any{"size": int64(1), "color": "blue"}
			s.replace(old)
			s.Process.Restart()
			s.Called("changed update", "spec update", "colored update")
		}},
		"by one without annotations and with another spec": {views, func(s *stage) {
			s.begin()
			s.Update(foos, "default", "web", func(o *unstructured.Unstructured) { bare(o, 2) })
			s.Called("changed update", "spec update", "sized update")
			s.Process.Restart()
			s.Called()
		}},
		"by one without annotations and with the same spec": {views, func(s *stage) {
			s.begin()
			s.Update(foos, "default", "web", func(o *unstructured.Unstructured) { bare(o, 1) })
			s.Called()
			s.size(2)
			s.Called("changed update", "spec update", "sized update")
		}},
		"by one whose state somebody has written by hand": {views, func(s *stage) {
			s.begin()
			other := s.export()
			s.size(2)
			s.Forget()
			s.set(other.GetAnnotations()[state], "metadata", "annotations", state)
			s.Called()
			s.size(1)
			s.Called("changed update", "spec update", "sized update")
		}},
		"by an older one while a handler is to be tried again: it is tried for what is there now": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "size", j.Note("size", succeeds, temporary(time.Hour), succeeds), dsl.Field("spec.size"))
			}, func(s *stage) {
				s.begin()
				old := s.export()
				s.size(2)
				s.Called("size update")
				s.replace(old)
				s.Called("size update")
				s.Advance(2 * time.Hour)
				s.Called()
			},
		},
	})
}

// TestObjectsThatComeBack is law 7: what left the operator's selector or scope, and was seen off, is new
// when it comes back.
func TestObjectsThatComeBack(t *testing.T) {
	gold := func(options ...dsl.Option) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.LabelSelector = "tier=gold"
			foo.OnCreate("made", j.Note("made"))
			foo.OnUpdate("changed", j.Note("changed"))
			foo.OnDelete("left", j.Note("left"), options...)
		}
	}
	tier := func(s *stage, value string) { s.set(value, "metadata", "labels", "tier") }
	arrives := func(s *stage) {
		s.t.Helper()
		s.Launch()
		s.Create(web)
		tier(s, "gold")
		s.Called("made create")
	}
	scenarios(t, map[string]scenario{
		"it is new": {gold(), func(s *stage) {
			arrives(s)
			for range 3 {
				tier(s, "iron")
				s.Called("left delete")
				tier(s, "gold")
				s.Called("made create")
				s.finalizers(finalizer)
			}
			s.size(2)
			s.Called("changed update")
		}},
		"it is new where nothing holds objects": {gold(dsl.NoFinalizer()), func(s *stage) {
			arrives(s)
			tier(s, "iron")
			s.Called("left delete")
			tier(s, "gold")
			s.Called("made create")
		}},
		"it is new after a restart": {gold(), func(s *stage) {
			arrives(s)
			tier(s, "iron")
			s.Called("left delete")
			s.Process.Restart()
			tier(s, "gold")
			s.Called("made create")
		}},
		"it is new after a restart where nothing holds objects": {gold(dsl.NoFinalizer()), func(s *stage) {
			arrives(s)
			tier(s, "iron")
			s.Called("left delete")
			s.Process.Restart()
			tier(s, "gold")
			s.Called("made create")
		}},
		"it is new when it comes back while the operator is away": {gold(), func(s *stage) {
			arrives(s)
			tier(s, "iron")
			s.Called("left delete")
			stop(s)
			tier(s, "gold")
			s.Process.Restart()
			s.Called("made create")
		}},
	})
}
