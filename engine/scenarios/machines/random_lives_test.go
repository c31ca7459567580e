// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machines_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// world is where random machines act on one object, and what they have done. It outlasts processes.
type world struct {
	*kit.Cluster
	t     *testing.T
	r     *rand.Rand
	lines []*line
	p     []*kit.Process
	// asks: some action wants something of its object.
	asks bool
	// crashes counts those that may have come between an action and its being written down.
	crashes int
}

// line is one of its machines: states in a line with ways forward, and ways back that people take.
type line struct {
	*world
	machine dsl.Machine

	mu sync.Mutex
	// entered counts how often each Enter has succeeded, by state and the time in it.
	entered map[string]int
	// fails are how often an action fails yet.
	fails map[string]int
}

// fortune is what a world is to have: how many machines, with times and budgets where it is bounded, and processes that follow one
// another.
type fortune struct {
	bounded bool
	// noStatus: status is no subresource. live, keeps: the cache has less than all of the object.
	noStatus, live, keeps bool
	machines, processes   int
}

// threshold is a condition on one of web's numbers.
func threshold(field string, least int64) dsl.Predicate {
	return func(s *dsl.Subject) (bool, error) {
		n, _, err := unstructured.NestedInt64(s.Object.Object, "spec", field)
		return n >= least, err
	}
}

// enter is an Enter that takes its time, fails now and then, and is counted when it succeeds.
func (w *line) enter(state string, asks bool, fails int) dsl.Func {
	w.fails[state], w.asks = fails, w.asks || asks
	return func(_ context.Context, r *dsl.Request) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.fails[state] > 0 {
			w.fails[state]--
			return scene.ErrAgain
		}
		since, _ := w.field(r.Object, dsl.BookSince).(string)
		history, _ := w.field(r.Object, dsl.BookHistory).([]any)
		w.entered[fmt.Sprint(state, " ", since, " after ", len(history))]++
		if asks {
			r.Patch.SetStatus("entered"+w.machine.Name+state, since)
		}
		return nil
	}
}

// field is one of the progress.
func (w *line) field(o *unstructured.Unstructured, name string) any {
	out, _ := w.machine.Field(name).In(o.Object)
	return out
}

// random makes the machine.
func (w *line) random(bounded bool) {
	n := 3 + w.r.IntN(5)
	name := func(i int) string { return fmt.Sprintf("S%d", i) }
	for i := range n {
		s := dsl.State{Name: name(i), Terminal: i == n-1}
		if w.r.IntN(2) == 0 {
			s.Enter = w.enter(s.Name, !bounded && w.r.IntN(3) == 0, w.r.IntN(3)*w.r.IntN(2))
		}
		if w.r.IntN(3) == 0 {
			s.During = scene.Succeeds
		}
		if w.r.IntN(3) == 0 {
			s.Condition = "Busy"
		}
		for range 1 + w.r.IntN(2) {
			if !s.Terminal {
				s.Transitions = append(s.Transitions, dsl.Transition{
					To: name(i + 1 + w.r.IntN(n-1-i)), When: threshold(fmt.Sprint("n", w.r.IntN(3)), int64(w.r.IntN(4))), Why: "the number is large",
				})
			}
		}
		if bounded && !s.Terminal && w.r.IntN(2) == 0 {
			s.Stay = &dsl.Stay{AtMost: time.Duration(1+w.r.IntN(90)) * time.Minute, Then: name(i + 1 + w.r.IntN(n-1-i))}
		}
		if bounded && !s.Terminal && s.Enter != nil && w.r.IntN(2) == 0 {
			s.Retries = &dsl.Budget{AtMost: w.r.IntN(2), Then: name(n - 1)}
		}
		if i > 0 {
			s.Transitions = append(s.Transitions, dsl.Transition{To: name(w.r.IntN(i)), Manual: true})
		}
		w.machine.States = append(w.machine.States, s)
	}
	w.machine.AllowCycles, w.machine.History = true, 1000
	for _, s := range w.machine.States { // those that nothing leads to are no part of it
		w.machine.States[0].Transitions = append(w.machine.States[0].Transitions, dsl.Transition{To: s.Name, Manual: true})
	}
	w.machine.States[0].Transitions = slices.DeleteFunc(w.machine.States[0].Transitions, func(t dsl.Transition) bool { return t.To == "S0" })
}

// inWorld plays a life of one object.
func inWorld(t *testing.T, seed uint64, l fortune, play func(w *world)) {
	t.Helper()
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo", NoStatus: l.noStatus})
		c.Update("customresourcedefinitions.v1.apiextensions.k8s.io", "", "foos.example.com", scene.AddConditions)
		w := &world{Cluster: c, t: t, r: rand.New(rand.NewPCG(seed, 1))}
		for i := range l.machines {
			one := &line{world: w, machine: dsl.Machine{Name: []string{"", "beside"}[i]}, entered: map[string]int{}, fails: map[string]int{}}
			one.random(l.bounded)
			w.lines = append(w.lines, one)
		}
		op := dsl.New("op")
		if l.processes > 1 {
			op.Settings.LeaderElection = dsl.LeaderElection{ // with renewals that are few enough for days
				Mode: dsl.LeaderLease, Namespace: "default", LeaseDuration: 10 * time.Minute, RenewDeadline: 8 * time.Minute, RetryPeriod: 2 * time.Minute,
			}
		}
		op.Resource(scene.Foos, func(foo *dsl.Resource) {
			if l.live {
				foo.Cache = dsl.CacheLive
			}
			if l.keeps {
				foo.Keep = []dsl.Path{{"spec"}, {"status"}}
			}
			for _, one := range w.lines {
				foo.Machine(one.machine)
			}
		})
		for range l.processes {
			w.p = append(w.p, c.Start(op))
		}
		play(w)
	})
}

// numbers gives web new numbers, making it first if need be.
func (w *world) numbers(r *rand.Rand) {
	w.t.Helper()
	spec := map[string]any{"n0": int64(r.IntN(4)), "n1": int64(r.IntN(4)), "n2": int64(r.IntN(4))}
	if w.Get(scene.Foos, "default", "web") == nil {
		w.Create(map[string]any{"apiVersion": "example.com/v1", "kind": "Foo", "metadata": map[string]any{"name": "web", "namespace": "default"}, "spec": spec})
		return
	}
	w.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.Object["spec"] = spec })
}

// fault makes one of the things happen that should change nothing.
func (w *world) fault() {
	p := w.p[w.r.IntN(len(w.p))]
	fail := func(subresource string) {
		w.FailNext("patch", scene.Foos+subresource, apierrors.NewInternalError(scene.ErrAgain), apierrors.NewConflict(schema.GroupResource{Group: "example.com", Resource: "foos"}, "web", scene.ErrAgain))
	}
	if w.asks {
		w.crashes += 2 // what an action wanted and could not be written is worked out again
	}
	switch w.r.IntN(7) {
	case 0:
		fail("/status")
	case 1:
		w.LoseNext("patch", scene.Foos+"/status") // and a process that looks again finds it written
		w.crashes++
	case 2:
		w.crashes++
		p.CrashAfter(1 + w.r.IntN(3))
		w.Advance(time.Duration(w.r.IntN(3)) * time.Second)
		p.Kill()
		w.Advance(time.Duration(w.r.IntN(3)) * time.Second)
		p.Restart()
	case 3:
		w.crashes++
		p.Restart()
	case 4:
		w.CutWatches(scene.Foos)
	case 5: // somebody writes beside
		if w.Get(scene.Foos, "default", "web") != nil {
			w.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"n": fmt.Sprint(w.r.IntN(100))}) })
		}
	case 6:
		w.Advance(time.Duration(w.r.IntN(4000)) * time.Millisecond)
	}
}

// progress is what web's status says of where it is, and of how it came there.
func (w *line) book() (state string, since time.Time, moves []map[string]any) {
	w.t.Helper()
	o := w.Get(scene.Foos, "default", "web")
	state, _ = w.field(o, dsl.BookState).(string)
	text, _ := w.field(o, dsl.BookSince).(string)
	since, _ = time.Parse(time.RFC3339, text)
	list, _ := w.field(o, dsl.BookHistory).([]any)
	for _, item := range list {
		moves = append(moves, item.(map[string]any))
	}
	return state, since, moves
}

// judge holds the progress against the machine: each transition is one that is declared, from where the one before led to, none
// by time comes too early, and no state was entered twice without a reason.
func (w *line) judge() {
	w.t.Helper()
	state, since, moves := w.book()
	at, entered := "S0", time.Time{}
	for i, v := range moves {
		s, _ := w.machine.State(at)
		if v["from"] != at || !slices.ContainsFunc(s.Ways(), func(way dsl.Way) bool { return way.To == v["to"] }) {
			w.t.Errorf("transition %d is %v, from state %s", i, v, at)
		}
		when, _ := time.Parse(time.RFC3339, v["when"].(string))
		if strings.HasPrefix(v["why"].(string), "it was in state") && (s.Stay == nil || !entered.IsZero() && when.Sub(entered) < s.Stay.AtMost) {
			w.t.Errorf("transition %d is %v, in state %s since %v for at most %+v", i, v, at, entered, s.Stay)
		}
		at, entered = v["to"].(string), when
	}
	if state != at || len(moves) > 0 && !since.Equal(entered) {
		w.t.Errorf("the state is %s since %v, and the history ends in %s at %v", state, since, at, entered)
	}
	twice := 0
	for _, n := range w.entered {
		twice += n - 1
	}
	if twice > w.crashes {
		w.t.Errorf("%d times a state was entered again, with %d crashes: %v", twice, w.crashes, w.entered)
	}
}

// judge holds each machine's progress against it.
func (w *world) judge() {
	w.t.Helper()
	for _, one := range w.lines {
		one.judge()
	}
}

// rest lets everything come to an end, and holds that nothing is written from then on. It returns the ways that web went.
func (w *world) rest() (way []string) {
	w.t.Helper()
	w.Advance(5 * time.Hour)
	w.Advance(5 * time.Hour)
	for _, p := range w.p {
		p.Writes()
	}
	w.Advance(2 * time.Hour)
	w.p[0].Restart()
	w.Advance(time.Minute)
	for _, p := range w.p {
		for _, one := range p.Writes() {
			if one.Resource == "foos" {
				w.t.Errorf("at rest there was a write: %s", one)
			}
		}
	}
	for _, one := range w.lines {
		way = append(way, one.way()...)
	}
	return way
}

// way is the way that web went in the machine.
func (w *line) way() (way []string) {
	w.t.Helper()
	state, since, moves := w.book()
	if s, _ := w.machine.State(state); s.Stay != nil && time.Since(since) > s.Stay.AtMost+2*time.Second {
		w.t.Errorf("at rest it is in state %s since %v, for at most %v", state, since, s.Stay.AtMost)
	}
	for _, v := range moves {
		way = append(way, fmt.Sprint(v["from"], " ", v["to"]))
	}
	return append(way, "in "+state)
}

// TestMachinesKeepTheirPromisesInRandomLives holds what is promised of machines, whatever happens: to the object, by
// people's hands, to processes and their requests.
func TestMachinesKeepTheirPromisesInRandomLives(t *testing.T) {
	for seed := range uint64(scene.RandomLives) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			inWorld(t, seed, fortune{bounded: true, machines: 1 + int(seed/2%2), processes: 1 + int(seed%2), noStatus: seed%5 == 1, live: seed%5 == 2, keeps: seed%5 == 3}, func(w *world) {
				w.numbers(w.r)
				for range 5 + w.r.IntN(25) {
					switch w.r.IntN(6) {
					case 0:
						w.numbers(w.r)
					case 1:
						one := w.lines[w.r.IntN(len(w.lines))].machine
						to := one.States[w.r.IntN(len(one.States))].Name
						w.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
							o.SetAnnotations(map[string]string{one.GotoKey("op.handwerk.dev"): to})
						})
					case 2:
						w.Advance(time.Duration(w.r.IntN(60)) * time.Minute)
					default:
						w.fault()
					}
					if w.r.IntN(2) == 0 {
						w.Settle()
					}
				}
				w.rest()
				w.judge()
				for _, one := range w.lines {
					if w.Get(scene.Foos, "default", "web").GetAnnotations()[one.machine.GotoKey("op.handwerk.dev")] != "" {
						w.t.Error("a wish is still there")
					}
				}
			})
		})
	}
}

// TestFaultsDoNotChangeTheWayOfAnObject holds that faults change nothing in what becomes of an object: it goes the same way
// to the same end as without any.
func TestFaultsDoNotChangeTheWayOfAnObject(t *testing.T) {
	for seed := range uint64(scene.RandomLives / 2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			var without, with []string
			live := func(faults bool) (way []string) {
				inWorld(t, seed, fortune{machines: 1 + int(seed%2), processes: 1, noStatus: seed%5 == 1, live: seed%5 == 2, keeps: seed%5 == 3}, func(w *world) {
					numbers := rand.New(rand.NewPCG(seed, 2))
					for range 3 {
						w.numbers(numbers)
						for range 4 {
							if faults {
								w.fault()
							}
						}
						way = w.rest()
						w.judge()
					}
				})
				return way
			}
			without, with = live(false), live(true)
			if diff := cmp.Diff(without, with); diff != "" {
				t.Errorf("the way (-without faults +with faults):\n%s", diff)
			}
		})
	}
}
