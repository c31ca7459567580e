// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// given has for each option of Go authors a value that is valid where the option has a meaning.
var given = map[string]Option{
	"was":          Was("earlier"),
	"causes":       func(h *Handler) { h.Causes = append(h.Causes, Create) },
	"when":         When(func(*Subject) (bool, error) { return true, nil }),
	"field":        Field("spec.a"),
	"labels":       LabelExists("a"),
	"annotations":  AnnotationExists("a"),
	"retries":      Retries(3),
	"errors":       Errors(ErrorsFail),
	"backoff":      WithBackoff(time.Second, time.Minute),
	"timeout":      Timeout(time.Second),
	"deadline":     Deadline(time.Minute),
	"after":        After("first"),
	"finalizer":    NoFinalizer(),
	"onFailure":    Release(),
	"deleted":      Deleted(),
	"reads":        Reads("spec.a"),
	"old":          NoOld(),
	"every":        func(h *Handler) { h.Timing = &Timing{Every: time.Minute} },
	"idle":         func(h *Handler) { h.Timing.Idle = time.Minute },
	"at":           func(h *Handler) { h.Timing.At = func(*Subject) (time.Time, error) { return time.Time{}, nil } },
	"initialDelay": InitialDelay(time.Second),
}

// TestEachOptionOnEachKindOfHandler adds one option at a time to a handler of a kind, and compares the faults with
// their places.
func TestEachOptionOnEachKindOfHandler(t *testing.T) {
	const (
		noObject   = "is not for a schedule, which has no one object"
		ofObjects  = "is for handlers of objects, which startup has not"
		onceOnly   = "is not for probes, which are asked once each time"
		forDeletes = "is only for handlers with cause delete"
		forResumes = "is only for handlers with cause resume that are not level-triggered and have no cause delete"
	)
	activity := map[string]string{
		"when": ofObjects, "field": ofObjects, "labels": ofObjects, "annotations": ofObjects, "was": ofObjects, "after": ofObjects,
		"finalizer": ofObjects, "onFailure": ofObjects, "deleted": ofObjects, "old": ofObjects, "reads": ofObjects, "every": ofObjects, "initialDelay": ofObjects,
	}
	kinds := map[string]struct {
		declare func(op *Operator, foo *Resource, option Option)
		place   string
		leftOut []string // options that the kind always has, or that are faulty on it in two ways
		want    map[string]string
	}{
		"a handler of objects": {
			func(_ *Operator, foo *Resource, option Option) { foo.OnCreate("h", nothing, option) },
			"resource foos.v1.example.com: handler h: ", []string{"every", "idle", "at", "causes"}, map[string]string{
				"finalizer": forDeletes, "onFailure": forDeletes, "deleted": forResumes, "initialDelay": "is only for daemons and timers (every, pause, cron or idle)",
			},
		},
		"a daemon": {
			func(_ *Operator, foo *Resource, option Option) { foo.Daemon("h", idles, option) },
			"resource foos.v1.example.com: handler h: ", []string{"idle", "at", "every"}, map[string]string{
				"was": "is not for daemons, which have no stored state", "causes": "is not for daemons, which run all the time",
				"field": "is not for daemons, which hear of every change", "errors": "is not for daemons: an error has them run again, Permanent ends them",
				"timeout":  "is not for daemons, which run as long as they like (want stopWithin for the time to end)",
				"deadline": "is not for daemons, which run as long as they like", "after": "is not for daemons, which run beside handlers",
				"onFailure": "is not for daemons: a deletion does not wait for one that has ended",
				"deleted":   "is not for daemons, which end before their object goes", "old": "is not for daemons, which have no stored state",
			},
		},
		"a schedule": {
			func(_ *Operator, foo *Resource, option Option) {
				foo.Schedule(Timing{Every: time.Hour}, "h", nothing, option)
			},
			"resource foos.v1.example.com: handler h: ", nil, map[string]string{
				"causes": noObject, "when": noObject, "field": noObject, "labels": noObject, "annotations": noObject, "idle": noObject, "at": noObject, "after": noObject,
				"was": noObject, "old": noObject, "reads": noObject, "finalizer": forDeletes, "onFailure": forDeletes, "deleted": forResumes,
			},
		},
		"an activity": {
			func(op *Operator, _ *Resource, option Option) { op.OnStartup("h", nothing, option) },
			"operator: startup h: ", []string{"idle", "at"}, activity,
		},
		"a probe": {
			func(op *Operator, _ *Resource, option Option) { op.OnHealth("h", nothing, option) },
			"operator: health h: ", []string{"idle", "at"}, func() map[string]string {
				out := map[string]string{"retries": onceOnly, "errors": onceOnly, "backoff": onceOnly, "deadline": onceOnly}
				for name := range activity {
					out[name] = "is for handlers of objects, which health has not"
				}
				return out
			}(),
		},
	}
	for kind, tt := range kinds {
		for name, option := range given {
			if slices.Contains(tt.leftOut, name) {
				continue
			}
			t.Run(kind+" with "+name, func(t *testing.T) {
				op := New("test")
				foo := op.Resource("foos.v1.example.com", func(r *Resource) { r.OnCreate("first", nothing) })
				tt.declare(op, foo, option)
				want := ""
				if why := tt.want[name]; why != "" {
					want = tt.place + name + ": " + why
				}
				got := ""
				if err := op.Validate(); err != nil {
					got = err.Error()
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("faults (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestOptionsThatSubHandlersCannotHave declares a sub-handler with one option at a time.
func TestOptionsThatSubHandlersCannotHave(t *testing.T) {
	refused := []string{"was", "causes", "after", "finalizer", "onFailure", "deleted", "every", "reads"}
	for name, option := range given {
		if name == "idle" || name == "at" {
			continue // it needs a timing
		}
		t.Run(name, func(t *testing.T) {
			r := &Request{Parts: &Parts{}}
			r.Handler = "h"
			r.Handle("part", func(context.Context, *Request) error { return nil }, option)
			_, err := r.Parts.Declared()
			var want error
			if slices.Contains(refused, name) {
				want = errors.New("declaring sub-handler h/part: it has an option that is for handlers of a resource alone")
			}
			if (err == nil) != (want == nil) || err != nil && err.Error() != want.Error() {
				t.Errorf("error %v, want %v", err, want)
			}
		})
	}
}

// TestEveryOptionIsTried compares the options of the tests above with the table.
func TestEveryOptionIsTried(t *testing.T) {
	for _, row := range optionTable {
		if _, is := given[row.name]; is != (row.given != nil) {
			t.Errorf("option %s: a test has it: %t, and a handler in Go can have it: %t", row.name, is, row.given != nil)
		}
	}
}
