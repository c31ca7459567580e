// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// model is one run of a script, and what the reference knows of it.
type model struct {
	*kit.Cluster
	Process *kit.Process
	exports map[string]*unstructured.Unstructured
	// meanwhile, when it is set, happens while a handler runs for an object.
	meanwhile func(name string)

	mode    mode
	mu      sync.Mutex // guards the rest: handlers run when they will
	program program
	dice    *rand.Rand // decides whether a filter that may fail does
	lives   map[types.UID]*lifetime
	// moment counts the moments at which answers are held against reconciles; zero where none are.
	moment int
	// runs: there is a process. Process counts them, version counts programs, calls counts calls.
	runs                    bool
	process, version, calls int
	// resting: nothing has happened since the last rest. Rested is how many calls there were before that.
	resting bool
	rested  int
	// excused: until the next rest calls may be in vain, and come again. Forgetful: a process may not know of them,
	// for it crashed. Soft: changes in the middle of a reconcile make it hard to know what a handler gets as old.
	excused, forgetful, soft bool
	// lost is how many answers to writes are yet to get lost.
	lost int

	ink           sync.Mutex // guards story and faults
	story, faults []string
}

func (m *model) launch() {
	m.Process = m.Start(m.program.operator(m.mode, m.call, m.ask), func(s *engine.Settings) { s.Log = logr.Discard() })
}

// mode is how an operator is run, whatever its program. It stays as it is in a script.
type mode struct {
	// scoped: it works in one namespace, with a cache of its own. Live: its cache has nothing but keys.
	scoped, live bool
	// turns: its handlers take turns.
	turns bool
}

func newMode(r *rand.Rand) mode {
	return mode{scoped: r.IntN(3) == 0, live: r.IntN(6) == 0}
}

// live plays a script with a program, and returns what was wrong, and all that happened.
func live(t *testing.T, d mode, p program, script []step) (faults, story []string) {
	t.Helper()
	kit.Run(t, func(_ *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo", ObservedGeneration: true})
		m := &model{Cluster: c, mode: d, program: p, dice: rand.New(rand.NewPCG(1, 2)), lives: map[types.UID]*lifetime{}, exports: map[string]*unstructured.Unstructured{}}
		m.begin(p)
		for _, s := range script {
			m.play(s)
			if len(m.faults) > 0 {
				break
			}
		}
		faults, story = m.faults, m.story
	})
	return faults, story
}

// shrink leaves out of a script, and of the program, what is not needed for it to go wrong.
func shrink(t *testing.T, d mode, p program, script []step) (program, []step) {
	t.Helper()
	wrong := func(p program, script []step) bool {
		faults, _ := live(t, d, p, script)
		return len(faults) > 0
	}
	for i := range slices.Backward(script) {
		if less := slices.Delete(slices.Clone(script), i, i+1); wrong(p, less) {
			script = less
		}
	}
	if slices.ContainsFunc(script, func(s step) bool { return s.program != nil }) {
		return p, script
	}
	for i := range slices.Backward(p) {
		less := slices.Delete(slices.Clone(p), i, i+1)
		for j := range less {
			less[j].after = slices.DeleteFunc(slices.Clone(less[j].after), func(id string) bool { return id == p[i].id })
		}
		if len(less) > 0 && wrong(less, script) {
			p = less
		}
	}
	return p, script
}

// seeds are those of this run: MODEL_SEED is one, MODEL_SEEDS how many.
func seeds(t *testing.T) (first, last uint64) {
	t.Helper()
	number := func(name string, otherwise uint64) uint64 {
		text := os.Getenv(name)
		if text == "" {
			return otherwise
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	first = number("MODEL_SEED", 0)
	return first, first + number("MODEL_SEEDS", 60)
}

// TestModel holds the engine against a small reference: random programs of handlers, random lives of objects.
// MODEL_SEED=7 MODEL_SEEDS=1 go test ./engine/scenarios/model -run TestModel does one of them again.
func TestModel(t *testing.T) {
	first, last := seeds(t)
	for seed := first; seed < last; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			d := newMode(r)
			p := newProgram(r, d)
			script := newScript(r, d, p)
			faults, _ := live(t, d, p, script)
			if len(faults) == 0 {
				return
			}
			p, script = shrink(t, d, p, script)
			_, story := live(t, d, p, script)
			t.Errorf("MODEL_SEED=%d MODEL_SEEDS=1: %s\nmode: %+v\nprogram:\n%s\nstory:\n%s", seed, faults[0], d, p, strings.Join(story, "\n"))
		})
	}
}

// TestTheModelKnowsWhoSawAnObjectOff holds that the reference takes no handler for one that missed a deletion which another version of
// the program has seen to its end.
func TestTheModelKnowsWhoSawAnObjectOff(t *testing.T) {
	one, other := program{{id: "one", kind: "delete", retries: dsl.Unlimited}}, program{{id: "other", kind: "delete", retries: dsl.Unlimited}}
	create, remove := step{what: "create", name: "one", edit: edit{"spec.size", int64(1)}}, step{what: "delete", name: "one"}
	away, back := step{what: "upgrade", program: other}, step{what: "roll back", program: one}
	for name, script := range map[string][]step{
		"it did, and was renamed and back":       {create, remove, away, back, {what: "rest"}},
		"it came when the other one had done so": {create, {what: "stop"}, remove, away, back, {what: "rest"}},
	} {
		t.Run(name, func(t *testing.T) {
			if faults, story := live(t, mode{}, one, script); len(faults) > 0 {
				t.Errorf("%s\nstory:\n%s", faults[0], strings.Join(story, "\n"))
			}
		})
	}
}

// TestTheModelAllowsAnotherTry holds that the reference takes it for no fault when the engine tries again for a when that has become
// true, and when a process does not know of a failure that could not be stored.
func TestTheModelAllowsAnotherTry(t *testing.T) {
	create := step{what: "create", name: "one", edit: edit{"spec.color", "red"}}
	for name, tt := range map[string]struct {
		handler craft
		script  []step
	}{
		"a when that has become true": {
			craft{id: "h", kind: "create", view: "spec.color", filter: "red", fails: 1, wait: time.Minute},
			[]step{create, {what: "blue for a while", name: "one", edit: edit{"spec.color", "blue"}}, {what: "rest"}},
		},
		"a failure that was not stored": {
			craft{id: "h", kind: "update", view: "spec.size", fails: 2, wait: time.Second},
			[]step{
				create, {what: "edit, and writes fail", name: "one", edit: edit{"spec.size", int64(0)}},
				{what: "edits unseen until a listing", name: "one", edit: edit{"spec.size", int64(1)}}, {what: "restart"}, {what: "rest"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if faults, story := live(t, mode{}, program{tt.handler}, tt.script); len(faults) > 0 {
				t.Errorf("%s\nstory:\n%s", faults[0], strings.Join(story, "\n"))
			}
		})
	}
}
