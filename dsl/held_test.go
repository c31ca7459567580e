// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestHeld(t *testing.T) {
	nothing := func(context.Context, *Request) error { return nil }
	known := func(sets string, reads ...string) Option {
		return func(h *Handler) {
			h.Known.Reads.Only = true
			for _, text := range reads {
				h.Known.Reads.Paths = append(h.Known.Reads.Paths, path(text))
			}
			if sets != "" {
				h.Known.Sets = append(h.Known.Sets, path(sets))
			}
		}
	}
	tests := map[string]struct {
		declare func(op *Operator, foo *Resource)
		want    []string
	}{
		"what handlers read and set, and conditions": {func(_ *Operator, foo *Resource) {
			foo.OnReconcile("a", nothing, known("status.replicas", "spec.replicas", "spec.image"))
			foo.OnReconcile("b", nothing, known("spec.size", "spec.replicas"), Annotation("a", "b"))
		}, []string{"spec.image", "spec.replicas", "spec.size", "status.conditions", "status.replicas", "annotation test.handwerk.dev/", "annotation a"}},
		"all annotations, where one handler reads all": {func(_ *Operator, foo *Resource) {
			foo.OnReconcile("a", nothing, known("", "metadata.annotations"))
			foo.OnReconcile("b", nothing, known("", `metadata.annotations["x/y"]`, "metadata.labels.a"))
		}, []string{"status.conditions"}},
		"an annotation that a handler sets": {func(_ *Operator, foo *Resource) {
			foo.OnReconcile("a", nothing, known(`metadata.annotations["x/y"]`, "metadata.labels.a"))
		}, []string{"status.conditions", "annotation test.handwerk.dev/", "annotation x/y"}},
		"what is declared, and what the engine reads": {func(_ *Operator, foo *Resource) {
			foo.Keep = []Path{path("spec.x")}
			foo.OnReconcile("a", nothing, known("", "spec.replicas"))
		}, []string{"spec.x", "status.conditions", "status.observedGeneration"}},
		"all, where a handler looks at all of the object": {func(_ *Operator, foo *Resource) { foo.OnReconcile("a", nothing, known("", "")) }, nil},
		"all, where one handler's code is not known": {func(_ *Operator, foo *Resource) {
			foo.OnReconcile("a", nothing, known("", "spec.x"))
			foo.OnReconcile("b", nothing)
		}, nil},
		"all, where a handler runs for changes": {func(_ *Operator, foo *Resource) { foo.OnUpdate("a", nothing, known("", "spec.x")) }, nil},
		"what handlers in Go say that they read, and name, and what the engine reads": {func(_ *Operator, foo *Resource) {
			foo.OnReconcile("a", nothing, Reads("spec.size", "metadata.labels.a"))
			foo.OnUpdate("b", nothing, Reads("status.phase"), Field("spec.color"))
			foo.OnDelete("c", nothing, Reads())
			foo.Every(time.Hour, "d", nothing, Reads("spec.beat"))
			foo.Daemon("e", func(context.Context, *DaemonRequest) error { return nil }, Reads("spec.stay"))
			foo.OnReconcile("f", nothing, known("status.set", "spec.read"))
		}, []string{"spec.beat", "spec.color", "spec.read", "spec.size", "spec.stay", "status.conditions", "status.phase", "status.set"}},
		"the fields of a typed handler that says that it reads no others": {func(_ *Operator, foo *Resource) {
			type typed struct {
				Spec struct {
					Size int
					Door struct{ Open bool }
				} `json:"spec"`
				Status struct {
					Seen bool `json:"seen"`
				} `json:"status"`
			}
			foo.OnReconcile("a", Typed(func(context.Context, *TypedRequest[typed]) error { return nil }), Reads())
		}, []string{"spec.Door", "spec.Size", "status.conditions", "status.seen"}},
		"all, where the type of a typed handler is any map": {func(_ *Operator, foo *Resource) {
			foo.OnReconcile("a", Typed(func(context.Context, *TypedRequest[map[string]any]) error { return nil }), Reads())
		}, nil},
		"all, where one of two handlers in Go does not say what it reads": {func(_ *Operator, foo *Resource) {
			foo.OnReconcile("a", nothing, Reads("spec.size"))
			foo.OnDelete("b", nothing)
		}, nil},
		"all, where a handler looks at all objects": {func(_ *Operator, foo *Resource) {
			foo.OnReconcile("a", nothing, known("", "spec.x"))
			foo.Schedule(Timing{Every: time.Hour}, "b", nothing, known("", "spec.x"))
		}, nil},
		"nothing is said of objects that are not held compact": {func(_ *Operator, foo *Resource) {
			foo.Cache = CacheLive
			foo.OnReconcile("a", nothing, known("", "spec.x"))
		}, nil},
		"all, where the objects are somebody's children": {func(op *Operator, foo *Resource) {
			foo.OnReconcile("a", nothing, known("", "spec.x"))
			op.Resource("bars.v1.example.com", func(bar *Resource) { bar.Owns("foos.v2.example.com"); bar.OnReconcile("a", nothing) })
		}, nil},
		"all, where the objects are related to others": {func(op *Operator, foo *Resource) {
			foo.OnReconcile("a", nothing, known("", "spec.x"))
			op.Resource("bars.v1.example.com", func(bar *Resource) {
				bar.Relates(Relation{Name: "foos", Resource: foo.Name})
				bar.OnReconcile("a", nothing)
			})
		}, nil},
		"all, where an index is over the same objects": {func(op *Operator, foo *Resource) {
			foo.OnReconcile("a", nothing, known("", "spec.x"))
			op.Index("foos", "foos.v2.example.com", nil)
		}, nil},
		"the observed generation, where the engine sets it": {func(_ *Operator, foo *Resource) {
			foo.OnReconcile("a", nothing, known("", "spec.x"), Needs("patch", "self/status"))
		}, []string{"spec.x", "status.conditions", "status.observedGeneration", "annotation test.handwerk.dev/"}},
		"no more for an index over other objects, or over some of these": {func(op *Operator, foo *Resource) {
			foo.OnReconcile("a", nothing, known("", "spec.x"))
			op.Index("bars", "bars.v1.example.com", nil)
			op.Index("foos", "foos.v1.example.com", nil).LabelSelector = "a=b"
		}, []string{"spec.x", "status.conditions", "annotation test.handwerk.dev/"}},
		"all, where others are related to the objects": {func(_ *Operator, foo *Resource) {
			foo.Relates(Relation{Name: "bars", Resource: ResourceName{Resource: "bars", Version: "v1"}})
			foo.OnReconcile("a", nothing, known("", "spec.x"))
		}, nil},
		"all, where the resource is declared twice": {func(op *Operator, foo *Resource) {
			foo.OnReconcile("a", nothing, known("", "spec.x"))
			op.Resource("foos.example.com", func(again *Resource) { again.OnReconcile("b", nothing, known("", "spec.y")) })
		}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			op := New("test")
			var foo *Resource
			op.Resource("foos.v1.example.com", func(r *Resource) { foo = r; test.declare(op, r) })
			var got []string
			held := op.Held(foo)
			for _, p := range held.Fields {
				got = append(got, p.String())
			}
			for _, key := range held.Annotations {
				got = append(got, "annotation "+key)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// path is a path; that of an empty text is all of the object.
func path(text string) Path {
	if text == "" {
		return Path{}
	}
	p, err := ParsePath(text)
	if err != nil {
		panic(err)
	}
	return p
}
