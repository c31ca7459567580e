// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWhatYAMLRefusesIsRefusedInGo(t *testing.T) {
	handler := func(options ...Option) func(*Operator) {
		return func(op *Operator) {
			op.Resource("foos.v1.example.com", func(r *Resource) { r.OnCreate("h", nothing, options...) })
		}
	}
	settings := func(s Settings) func(*Operator) {
		return func(op *Operator) { handler()(op); op.Settings = s }
	}
	tests := map[string]struct {
		declare func(*Operator)
		want    string // all that is said; empty means that nothing is wrong
	}{
		"a path leads somewhere": {
			handler(func(h *Handler) { h.Fields = []Path{{}} }),
			"resource foos.v1.example.com: handler h: field: must not be empty",
		},
		"a path in keep, too": {
			func(op *Operator) {
				handler()(op)
				op.Resources()[0].Keep = []Path{{"spec"}, {}}
			},
			"resource foos.v1.example.com: keep[1]: must not be empty",
		},
		"labels have keys that objects may have": {
			handler(Label("a b", "x")),
			"resource foos.v1.example.com: handler h: labels: the key \"a b\" is not one that objects may have",
		},
		"and values": {
			handler(Label("a", "x y")),
			"resource foos.v1.example.com: handler h: labels: the value \"x y\" is not one that labels may have",
		},
		"annotations have such keys, too": {
			handler(AnnotationExists("a b")),
			"resource foos.v1.example.com: handler h: annotations: the key \"a b\" is not one that objects may have",
		},
		"the value of an annotation is any text": {handler(Annotation("Example.com/a", "x y")), ""},
		"who lets objects go before it runs cannot hold them": {
			func(op *Operator) {
				op.Resource("foos.v1.example.com", func(r *Resource) { r.OnDelete("h", nothing, NoFinalizer(), Release()) })
			},
			"resource foos.v1.example.com: handler h: onFailure: says nothing with finalizer: false, which holds no object",
		},
		"a policy of errors is known": {
			handler(Errors("retri")),
			`resource foos.v1.example.com: handler h: errors: unknown policy "retri" (did you mean "retry"?)`,
		},
		"an attempt fits into the time of all": {
			handler(Timeout(time.Minute), Deadline(time.Second)),
			"resource foos.v1.example.com: handler h: timeout: one attempt (1m0s) must not take longer than all of them, which have a deadline of 1s",
		},
		"a period is not shorter than a second": {
			handler(At(Timing{Every: 1})),
			"resource foos.v1.example.com: handler h: every: must be at least 1s, found 1ns",
		},
		"a pause is not shorter than a second": {
			handler(At(Timing{Pause: time.Second - 1})),
			"resource foos.v1.example.com: handler h: pause: must be at least 1s, found 999.999999ms",
		},
		"a deadline is not negative": {
			handler(Deadline(-time.Second)),
			"resource foos.v1.example.com: handler h: retries, timeout, deadline and back-off must not be negative",
		},
		"objects that are being deleted are for resume handlers": {
			handler(Deleted()),
			"resource foos.v1.example.com: handler h: deleted: is only for handlers with cause resume",
		},
		"and not for level-triggered ones, which must not recreate what is to go": {
			func(op *Operator) {
				op.Resource("foos.v1.example.com", func(r *Resource) { r.OnReconcile("h", nothing, Deleted()) })
			},
			"resource foos.v1.example.com: handler h: deleted: is only for handlers with cause resume",
		},
		"what runs at the start has no object to look at": {
			func(op *Operator) {
				handler()(op)
				op.OnStartup("s", nothing, Field("spec"))
			},
			"operator: startup s: field: is for handlers of objects, which startup has not",
		},
		"nor does it run by time": {
			func(op *Operator) {
				handler()(op)
				op.OnStartup("s", nothing, InitialDelay(time.Minute))
			},
			"operator: startup s: initialDelay: is for handlers of objects, which startup has not",
		},
		"an id is there once for each cause": {
			func(op *Operator) {
				handler()(op)
				op.OnStartup("s", nothing)
				op.OnCleanup("s", nothing)
				op.OnCleanup("s", nothing)
			},
			"operator: cleanup s: id: the id is used twice",
		},
		"a probe is asked once each time": {
			func(op *Operator) {
				handler()(op)
				op.OnReady("p", nothing, Retries(3))
			},
			"operator: ready p: retries: is not for probes, which are asked once each time",
		},
		"indexes that a cleanup says it reads are there": {
			func(op *Operator) {
				handler()(op)
				op.Index("peers", "foos.v1.example.com", func(*unstructured.Unstructured) ([]Entry, error) { return nil, nil })
				op.AddActivity(Cleanup, Handler{ID: "good", Func: nothing, Retries: Unlimited, Known: Known{Reads: KnownReads{Indexes: []string{"*", "peers"}}}})
				op.AddActivity(Cleanup, Handler{ID: "c", Func: nothing, Retries: Unlimited, Known: Known{Reads: KnownReads{Indexes: []string{"peer"}}}})
			},
			`operator: cleanup c: it reads an unknown index "peer" (did you mean "peers"?)`,
		},
		"so it is for a probe": {
			func(op *Operator) {
				handler()(op)
				op.AddActivity(ReadyProbe, Handler{ID: "p", Func: nothing, Retries: Unlimited, Known: Known{Reads: KnownReads{Indexes: []string{"peer"}}}})
			},
			`operator: ready p: it reads an unknown index "peer" (there are none)`,
		},
		"a startup reads none": {
			func(op *Operator) {
				handler()(op)
				op.Index("peers", "foos.v1.example.com", func(*unstructured.Unstructured) ([]Entry, error) { return nil, nil })
				op.AddActivity(Startup, Handler{ID: "s", Func: nothing, Retries: Unlimited, Known: Known{Reads: KnownReads{Indexes: []string{"peers"}}}})
			},
			`operator: startup s: it reads index "peers": a startup runs before anything is watched`,
		},
		"needs are about something": {
			func(op *Operator) {
				handler()(op)
				op.OnStartup("s", nothing, Needs("patch", "self"))
			},
			"operator: startup s: needs: the need of",
		},
		"a mode of leadership is known": {
			settings(Settings{LeaderElection: LeaderElection{Mode: "leas"}}),
			`operator: settings.leaderElection.mode: unknown mode "leas"`,
		},
		"a lock wants a mode": {
			settings(Settings{LeaderElection: LeaderElection{Name: "lock"}}),
			"operator: settings.leaderElection.name: is only for modes lease and life",
		},
		"times of leadership are not negative": {
			settings(Settings{LeaderElection: LeaderElection{Mode: LeaderLease, RetryPeriod: -time.Second}}),
			"operator: settings.leaderElection: no time must be negative",
		},
		"a mode of Events is known": {
			settings(Settings{Events: "all"}),
			`operator: settings.events: unknown mode "all"`,
		},
		"a time wants the cause timer": {
			handler(func(h *Handler) { h.Timing = &Timing{Every: time.Minute} }),
			"resource foos.v1.example.com: handler h: causes: it has a time, but not the cause timer",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			op := New("test")
			test.declare(op)
			err := op.Validate()
			switch {
			case test.want == "" && err != nil:
				t.Errorf("Validate() = %v, want nothing", err)
			case test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), test.want) || strings.Contains(err.Error(), "\n")):
				t.Errorf("Validate() = %v, want %s", err, test.want)
			}
		})
	}
}

func TestFaultsAreReportedInOneOrder(t *testing.T) {
	op := New("test")
	op.Resource("foos.v1.example.com", func(r *Resource) { r.OnCreate("h", nothing, NoFinalizer(), Release()) })
	first := op.Validate().Error()
	for range 50 {
		if again := op.Validate().Error(); again != first {
			t.Fatalf("it says\n%s\nand then\n%s", first, again)
		}
	}
}
