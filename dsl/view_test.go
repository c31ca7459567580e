// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

func idle(context.Context, *dsl.Request) error { return nil }

// one returns a handler of the resource that declare adds it to.
func one(t *testing.T, declare func(r *dsl.Resource)) *dsl.Handler {
	t.Helper()
	var r *dsl.Resource
	dsl.New("op").Resource("foos.v1.example.com", func(into *dsl.Resource) { r = into; declare(into) })
	return r.Handlers()[0]
}

func paths(texts ...string) (out []dsl.Path) {
	for _, text := range texts {
		path := dsl.Path{}
		if text != "" {
			path = dsl.MustParsePath(text)
		}
		out = append(out, path)
	}
	return out
}

// TestWhatAHandlerLooksAt holds views against what handlers name, and what their code is known to read.
func TestWhatAHandlerLooksAt(t *testing.T) {
	reading := func(only bool, texts ...string) dsl.Option {
		return reading(dsl.KnownReads{Paths: paths(texts...), Only: only})
	}
	edge := []dsl.Cause{dsl.Create, dsl.Update}
	tests := map[string]struct {
		causes  []dsl.Cause
		options []dsl.Option
		want    string
	}{
		"the essence":                     {edge, nil, "all but the status"},
		"a field":                         {edge, []dsl.Option{dsl.Field("spec.size")}, "spec.size"},
		"fields add up, each once":        {edge, []dsl.Option{dsl.Field("status.b", "spec.size"), dsl.Field("spec.size")}, "spec.size, status.b"},
		"a field around another":          {edge, []dsl.Option{dsl.Field("spec.size", "spec")}, "spec"},
		"what an edge reads says nothing": {edge, []dsl.Option{reading(true, "spec.size")}, "all but the status"},
		"what a level reads beside":       {[]dsl.Cause{dsl.Reconcile}, []dsl.Option{reading(false, "spec.size", "status.a", "metadata.finalizers", "metadata.labels.x")}, "all but the status, metadata.finalizers, status.a"},
		"what a level reads alone":        {[]dsl.Cause{dsl.Reconcile}, []dsl.Option{reading(true, "status.a", "spec.size")}, "spec.size, status.a"},
		"a level that reads nothing":      {[]dsl.Cause{dsl.Reconcile}, []dsl.Option{reading(true)}, "nothing of the object itself"},
		"a level that reads outcomes": {[]dsl.Cause{dsl.Reconcile}, []dsl.Option{func(h *dsl.Handler) {
			h.Known.Reads = dsl.KnownReads{Only: true, Paths: paths("spec.size"), Outcomes: paths("app.state", "app", "other.message")}
		}}, "spec.size, handlers.app, handlers.other.message"},
		"an edge that reads outcomes": {edge, []dsl.Option{func(h *dsl.Handler) {
			h.Known.Reads = dsl.KnownReads{Outcomes: paths("app.state")}
		}}, "all but the status"},
		"a level that reads all":     {[]dsl.Cause{dsl.Reconcile}, []dsl.Option{reading(true, "", "spec.size")}, "all of the object"},
		"a level that names a field": {[]dsl.Cause{dsl.Reconcile}, []dsl.Option{dsl.Field("spec.size"), reading(true, "spec.color", "status.a")}, "spec.size, status.a"},
		"a level that says what it reads": {[]dsl.Cause{dsl.Reconcile}, []dsl.Option{dsl.Reads("status.a"), dsl.Reads("spec.size")},
			"metadata.annotations, metadata.labels, spec.size, status.a"},
		"an edge that says what it reads":           {edge, []dsl.Option{dsl.Reads("status.a", "spec.size")}, "metadata.annotations, metadata.labels, spec.size"},
		"one that says so, and names a field":       {edge, []dsl.Option{dsl.Reads("spec.size"), dsl.Field("spec.color")}, "spec.color"},
		"a level that says so, and names a field":   {[]dsl.Cause{dsl.Reconcile}, []dsl.Option{dsl.Reads("spec.size", "status.a"), dsl.Field("spec.color")}, "spec.color, status.a"},
		"one that says so, and has other such code": {[]dsl.Cause{dsl.Reconcile}, []dsl.Option{dsl.Reads("spec.size"), reading(false, "spec.a")}, "metadata.annotations, metadata.labels, spec.a, spec.size"},
		"one with unknown reads":                    {[]dsl.Cause{dsl.Reconcile}, nil, "all but the status"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := one(t, func(r *dsl.Resource) { r.On(test.causes, "h", idle, test.options...) })
			if got := h.View().String(); got != test.want {
				t.Errorf("it looks at %s, want %s", got, test.want)
			}
		})
	}
}

// TestCausesAroundTheObject holds that a handler which reads no children, no related objects and no indexes does not run
// for them, unless that was asked for by name.
func TestCausesAroundTheObject(t *testing.T) {
	but := func(without ...dsl.Cause) []dsl.Cause {
		return slices.DeleteFunc(dsl.ReconcileCauses(), func(c dsl.Cause) bool { return slices.Contains(without, c) })
	}
	tests := map[string]struct {
		causes []dsl.Cause
		reads  dsl.KnownReads
		want   []dsl.Cause
	}{
		"nothing is read":          {[]dsl.Cause{dsl.Reconcile}, dsl.KnownReads{Only: true}, but(dsl.Child, dsl.RelatedChange, dsl.IndexChange)},
		"children are read":        {[]dsl.Cause{dsl.Reconcile}, dsl.KnownReads{Only: true, Children: true}, but(dsl.RelatedChange, dsl.IndexChange)},
		"related objects are":      {[]dsl.Cause{dsl.Reconcile}, dsl.KnownReads{Only: true, Related: true}, but(dsl.Child, dsl.IndexChange)},
		"an index is":              {[]dsl.Cause{dsl.Reconcile}, dsl.KnownReads{Only: true, Indexes: []string{"x"}}, but(dsl.Child, dsl.RelatedChange)},
		"unknown reads are":        {[]dsl.Cause{dsl.Reconcile}, dsl.KnownReads{}, but()},
		"children are asked for":   {[]dsl.Cause{dsl.Reconcile, dsl.Child}, dsl.KnownReads{Only: true}, but(dsl.RelatedChange, dsl.IndexChange)},
		"it is no level-triggered": {[]dsl.Cause{dsl.Create, dsl.Child}, dsl.KnownReads{Only: true}, []dsl.Cause{dsl.Create, dsl.Child}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := one(t, func(r *dsl.Resource) { r.On(test.causes, "h", idle, reading(test.reads)) })
			if diff := cmp.Diff(test.want, h.Causes); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHandlersThatFeedEachOther holds which handlers are found to run each other for ever.
func TestHandlersThatFeedEachOther(t *testing.T) {
	type handler struct{ id, reads, sets string }
	tests := map[string]struct {
		handlers []handler
		want     [][]string
	}{
		"one that reads what it sets":    {[]handler{{"a", "status.a", "status.a"}}, nil},
		"a chain":                        {[]handler{{"a", "spec.x", "status.a"}, {"b", "status.a", "status.b"}}, nil},
		"two":                            {[]handler{{"a", "status.b", "status.a"}, {"b", "status.a", "status.b"}}, [][]string{{"a", "b"}}},
		"three":                          {[]handler{{"a", "status.c", "status.a"}, {"b", "status.a", "status.b"}, {"c", "status.b", "status.c"}}, [][]string{{"a", "b", "c"}}},
		"what is around counts":          {[]handler{{"a", "status", "status.a"}, {"b", "status.a.x", "status.b"}}, [][]string{{"a", "b"}}},
		"one beside a loop is not in it": {[]handler{{"z", "status.a", "status.z"}, {"a", "status.b", "status.a"}, {"b", "status.a", "status.b"}}, [][]string{{"a", "b"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var r *dsl.Resource
			dsl.New("op").Resource("foos.v1.example.com", func(into *dsl.Resource) {
				r = into
				for _, h := range test.handlers {
					r.OnReconcile(h.id, idle, reading(dsl.KnownReads{Paths: paths(h.reads), Only: true}),
						func(into *dsl.Handler) { into.Known.Sets = paths(h.sets) })
				}
			})
			if diff := cmp.Diff(test.want, r.Loops()); diff != "" {
				t.Errorf("loops (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAHandlerOfEventsHasNoOtherCause holds what goes with the cause event.
func TestAHandlerOfEventsHasNoOtherCause(t *testing.T) {
	for name, test := range map[string]struct {
		options []dsl.Option
		fine    bool
	}{
		"alone":        {nil, true},
		"with another": {[]dsl.Option{func(h *dsl.Handler) { h.Causes = append(h.Causes, dsl.Update) }}, false},
		"with a field": {[]dsl.Option{dsl.Field("spec")}, false},
		"with filters": {[]dsl.Option{dsl.Label("a", "b"), dsl.Retries(1)}, true},
	} {
		op := dsl.New("op")
		op.Resource("foos.v1.example.com", func(r *dsl.Resource) { r.OnEvent("see", idle, test.options...) })
		if err := op.Validate(); (err == nil) != test.fine {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func reading(reads dsl.KnownReads) dsl.Option { return func(h *dsl.Handler) { h.Known.Reads = reads } }
