// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// stall has a field of every form that a struct of an author may have.
type stall struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		place
		Title  string                  `json:"title"`
		Opens  *metav1.Time            `json:"opens,omitempty"`
		Door   *door                   `json:"door,omitempty"`
		Extra  map[string]string       `json:"extra,omitempty"`
		Pod    *corev1.PodTemplateSpec `json:"pod,omitempty"`
		Hidden string                  `json:"-"`
		memory string
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions,omitempty"`
		Observed   int64              `json:"observedGeneration,omitempty"`
	} `json:"status,omitzero"`
}

type place struct {
	City string `json:"city,omitempty"`
}

// door has one within, as a schema has.
type door struct {
	Color string `json:"color,omitempty"`
	Next  *door  `json:"next,omitempty"`
}

// whole are all fields of a stall's spec.
func whole() []string {
	return []string{"spec.city", "spec.title", "spec.opens", "spec.door", "spec.extra", "spec.pod"}
}

func paths(texts ...string) (out []Path) {
	for _, text := range texts {
		out = append(out, MustParsePath(text))
	}
	return out
}

func typed[T any]() Func { return Typed(func(context.Context, *TypedRequest[T]) error { return nil }) }

func typedDaemon[T any]() DaemonFunc {
	return TypedDaemon(func(context.Context, *TypedDaemonRequest[T]) error { return nil })
}

// TestAFieldOfATypeThatTheCacheDoesNotHoldIsAFault holds that a handler whose struct has a field that keep leaves out is reported
// before it runs: the field would read as not set.
func TestAFieldOfATypeThatTheCacheDoesNotHoldIsAFault(t *testing.T) {
	add := func(fn Func) func(*Resource) { return func(r *Resource) { r.OnReconcile("look", fn) } }
	without := func(field string) (out []string) {
		for _, one := range whole() {
			if one != field {
				out = append(out, one)
			}
		}
		return out
	}
	const rest = ", so the handler would see nothing there: hold it in the cache, or take it out of the type"
	missing := func(what string) string {
		return "resource foos.v1.example.com: handler look: its type " + what + rest
	}
	untyped := func(context.Context, *Request) error { return nil }
	tests := map[string]struct {
		add  func(*Resource)
		keep []string
		at   string
		want string
	}{
		"all is held":                       {add: add(typed[stall]())},
		"each field is held":                {add: add(typed[stall]()), keep: whole()},
		"what the fields are in is held":    {add: add(typed[stall]()), keep: []string{"spec"}},
		"a field is not held":               {add(typed[stall]()), without("spec.title"), "", missing("dsl.stall has spec.title, which keep leaves out")},
		"a configuration says what is held": {add(typed[stall]()), without("spec.title"), "operator.yaml:7:11", missing("dsl.stall has spec.title, which keep (at operator.yaml:7:11) leaves out")},
		"an embedded field is not held":     {add(typed[stall]()), without("spec.city"), "", missing("dsl.stall has spec.city, which keep leaves out")},
		"a time is not held":                {add(typed[stall]()), without("spec.opens"), "", missing("dsl.stall has spec.opens, which keep leaves out")},
		"a field of a struct is held":       {add(typed[stall]()), append(without("spec.door"), "spec.door.color"), "", missing("dsl.stall has spec.door.next, which keep leaves out")},
		"a key of a map is held":            {add(typed[stall]()), append(without("spec.extra"), "spec.extra.a"), "", missing("dsl.stall has spec.extra, which keep leaves out")},
		"a type that contains itself":       {add(typed[stall]()), append(without("spec.door"), "spec.door.color", "spec.door.next.next.color"), "", missing("dsl.stall has spec.door.next.color, spec.door.next.next.next, which keep leaves out")},
		"nothing of a struct is held":       {add(typed[stall]()), without("spec.door"), "", missing("dsl.stall has spec.door, which keep leaves out")},
		"many fields are not held":          {add(typed[stall]()), []string{"spec.title"}, "", missing("dsl.stall has spec.city, spec.opens, spec.door and 2 more, which keep leaves out")},
		"a field of the status is not held": {add(typed[struct{ Status struct{ Phase string } }]()), []string{"spec"}, "", missing("(a struct) has Status, which keep leaves out")},
		"a type of Kubernetes":              {add(typed[appsv1.Deployment]()), []string{"spec.replicas", "status"}, "", missing("v1.Deployment has spec.selector, spec.template, spec.strategy and 4 more, which keep leaves out")},
		"a part of a type of Kubernetes": {add: add(typed[struct {
			Spec struct {
				Replicas *int32 `json:"replicas,omitempty"`
			} `json:"spec"`
		}]()), keep: []string{"spec.replicas"}},
		"a map has any fields":               {add: add(typed[map[string]any]()), keep: []string{"spec.title"}},
		"a whole object has any fields":      {add: add(typed[unstructured.Unstructured]()), keep: []string{"spec.title"}},
		"code of others, which is not run":   {add: add(untyped), keep: []string{"spec.title"}},
		"a schedule, which has no object":    {add: func(r *Resource) { r.Schedule(Timing{Every: time.Hour}, "look", typed[stall]()) }, keep: []string{"spec.title"}},
		"a daemon":                           {func(r *Resource) { r.Daemon("look", typedDaemon[stall]()) }, without("spec.title"), "", missing("dsl.stall has spec.title, which keep leaves out")},
		"a daemon whose fields are all held": {add: func(r *Resource) { r.Daemon("look", typedDaemon[stall]()) }, keep: whole()},
		"a cache of metadata": {func(r *Resource) { r.Cache = CacheMetadata; r.OnEvent("look", typed[stall]()) }, nil, "",
			missing("dsl.stall has spec, status, which cache metadata leaves out")},
		"a cache of metadata, and a type that has no more": {add: func(r *Resource) {
			r.Cache = CacheMetadata
			r.OnEvent("look", typed[metav1.PartialObjectMetadata]())
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			op := New("demo")
			op.Resource("foos.v1.example.com", func(foo *Resource) {
				foo.Keep, foo.KeepAt = paths(tt.keep...), tt.at
				tt.add(foo)
			})
			got := ""
			if err := op.Validate(); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("the faults are\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// TestAnUndeclaredTypeFailsWithoutItsField holds the same for typed code that other code runs: nothing is called, and the handler fails
// for good.
func TestAnUndeclaredTypeFailsWithoutItsField(t *testing.T) {
	called := 0
	fn := Typed(func(context.Context, *TypedRequest[stall]) error { called++; return nil })
	attend := TypedDaemon(func(context.Context, *TypedDaemonRequest[stall]) error { called++; return nil })
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"title": "Bread"}}}
	const want = "its type dsl.stall has spec.city, spec.opens, spec.door and 2 more, which keep leaves out"
	kept := &shape.Kept{Fields: [][]string{{"spec", "title"}, {"status"}}}
	for name, err := range map[string]error{
		"a handler within steps": Steps(fn)(t.Context(), &Request{Subject: Subject{Object: object, Kept: kept}}),
		"a daemon":               attend(t.Context(), &DaemonRequest{Object: object, Kept: kept}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) || !IsPermanent(err) {
			t.Errorf("%s: %v, want %s, for good", name, err, want)
		}
	}
	if err := fn(t.Context(), &Request{Subject: Subject{Object: object}}); err != nil || called != 1 {
		t.Errorf("with all of the object: %v, called %d times", err, called)
	}
}

// TestIntoReadsWhatTheCacheHolds holds that a path which the cache does not hold is an error for good, and not as if nothing were there.
func TestIntoReadsWhatTheCacheHolds(t *testing.T) {
	type some struct{ Title string }
	type more struct{ Title, City string }
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"title": "Bread"}, "metadata": map[string]any{"name": "a"}}}
	keep := &shape.Kept{At: "foo.yaml:7:9", Fields: [][]string{{"spec", "title"}, {"spec", "doors"}}}
	for name, test := range map[string]struct {
		kept *shape.Kept
		path string
		out  any
		want string
	}{
		"a field that is held":                {keep, "spec.title", new(string), ""},
		"what is below a field that is held":  {keep, "spec.doors.front", new(string), ""},
		"metadata":                            {keep, "metadata", new(map[string]any), ""},
		"a struct of fields that are held":    {keep, "spec", new(struct{ Title string }), ""},
		"a pointer to such a struct":          {keep, "spec", new(*some), ""},
		"a field that is not held":            {keep, "spec.city", new(string), "decoding spec.city: keep (at foo.yaml:7:9) leaves spec.city out of the cache: add spec.city to it"},
		"a struct with a field that is not":   {keep, "spec", new(more), "decoding spec: its type dsl.more has spec.City, which keep (at foo.yaml:7:9) leaves out, so the handler would see nothing there: hold it in the cache, or take it out of the type"},
		"a map that is held in part":          {keep, "spec", new(map[string]any), "decoding spec: keep (at foo.yaml:7:9) leaves a part of it out of the cache: read fields of it"},
		"a field, and metadata alone is held": {&shape.Kept{Metadata: true}, "spec.city", new(string), "decoding spec.city: cache metadata does not hold spec.city: take cache compact, with keep"},
		"all of the object is held":           {nil, "spec", new(map[string]any), ""},
	} {
		err := (&Subject{Object: object, Kept: test.kept}).Into(test.path, test.out)
		switch got := fmt.Sprint(err); {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.want != "" && (got != test.want || !IsPermanent(err)):
			t.Errorf("%s: %v, want %s, for good", name, err, test.want)
		}
	}
}
