// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package causes_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// life is what happens to an object under one handler. The first step makes the object. Each step lists the fields of the spec with
// their new values, as in "phase=Up size=2", where "-" removes a field, and behind an arrow the run that follows: its cause, and
// the old and the new value of the field that the test is about.
type life struct {
	handler string
	field   string // spec.phase by default
	steps   []string
}

// runs notes the runs of handlers.
type runs struct {
	mu    sync.Mutex
	all   []string
	fails int
}

func (r *runs) note(of string) dsl.Func {
	return func(_ context.Context, q *dsl.Request) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.fails > 0 {
			r.fails--
			return dsl.Temporary(scene.ErrAgain, time.Minute)
		}
		in := func(o map[string]any) any {
			value, found := dsl.MustParsePath(of).In(o)
			if !found {
				return "-"
			}
			return value
		}
		r.all = append(r.all, fmt.Sprintf("%s %v to %v", q.Cause, in(q.Old), in(q.Object.Object)))
		return nil
	}
}

func (r *runs) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := strings.Join(r.all, ", ")
	r.all = nil
	return out
}

// edit makes the change of a step.
func (l life) edit(s *scene.Stage, change string) {
	make := func(o *unstructured.Unstructured) {
		for one := range strings.FieldsSeq(change) {
			name, value, _ := strings.Cut(one, "=")
			path := []string{"spec", name}
			if name == "tier" {
				path = []string{"metadata", "labels", name}
			}
			if value == "-" {
				unstructured.RemoveNestedField(o.Object, path...)
			} else if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
				s.T.Error(err)
			}
		}
	}
	if s.Web() != nil {
		s.Update(scene.Foos, "default", "web", make)
		return
	}
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Foo", "metadata": map[string]any{"name": "web", "namespace": "default"}, "spec": map[string]any{"any": "x"}}}
	make(o)
	s.Create(o)
}

// away says what the process does at each step.
type away struct {
	// restarts: a new process begins after each step. Absent: no process runs while the object is changed. Fails: each run
	// fails at first.
	restarts, absent, fails bool
}

// play plays the steps. A step costs one write at most, and a restart none.
func (l life) play(t *testing.T, how away) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
		var all runs
		registry := handlers.Standard()
		registry.Function(dsl.Function{Name: "test.Run", Func: all.note(cmp.Or(l.field, "spec.phase"))})
		op, err := config.Parse("operator.yaml", []byte(`{apiVersion: handwerk.dev/v1alpha1, kind: Operator, metadata: {name: op}, resources: [
 {resource: foos.v1.example.com, handlers: [{id: h, call: test.Run, `+l.handler+`}]}]}`), registry)
		if err != nil {
			t.Fatal(err)
		}
		s := scene.NewStage(t, c)
		s.Operator = op
		s.Launch()
		for i, step := range l.steps {
			change, want, _ := strings.Cut(step, " -> ")
			s.Settle()
			s.Writes()
			if how.fails && want != "" {
				all.mu.Lock()
				all.fails = 1
				all.mu.Unlock()
			}
			if how.absent && i > 0 {
				s.Process.Kill()
				l.edit(s, change)
				s.Process.Restart()
			} else {
				l.edit(s, change)
			}
			s.Advance(5 * time.Minute)
			if diff := gocmp.Diff(want, all.take()); diff != "" {
				t.Errorf("step %d, %s (-want +got):\n%s", i+1, step, diff)
			}
			if writes := s.Writes(); !how.fails && len(writes) > 1 {
				t.Errorf("step %d, %s: it wrote %v", i+1, step, writes)
			}
			if how.restarts {
				s.Process.Kill()
				s.Process.Restart()
			}
			s.Advance(time.Hour)
			if diff := gocmp.Diff("", all.take()); diff != "" {
				t.Errorf("it runs again after step %d, %s (-want +got):\n%s", i+1, step, diff)
			}
			if writes := s.Writes(); len(writes) > 0 {
				t.Errorf("at rest after step %d, %s, it wrote %v", i+1, step, writes)
			}
		}
	})
}

func playLives(t *testing.T, all map[string]life) {
	t.Helper()
	for name, one := range all {
		for process, how := range map[string]away{
			"":                                     {},
			", with a restart after each step":     {restarts: true},
			", with no process during each step":   {absent: true},
			", with a failure before each success": {fails: true},
			", with failures and restarts":         {fails: true, restarts: true},
		} {
			t.Run(name+process, func(t *testing.T) { one.play(t, how) })
		}
	}
}

// TestTheChangeThatMakesAWhenTrueIsNews holds the rule of semantics.md: a handler of create or update runs when its when holds and
// what it looks at differs from what it handled last, or from what it looked at when its when last did not hold.
func TestTheChangeThatMakesAWhenTrueIsNews(t *testing.T) {
	const broken = `field: spec.phase, when: "self.spec.?phase.orValue('') == 'Broken'"`
	playLives(t, map[string]life{
		"an alarm is raised at each change for the worse": {handler: `causes: [update], ` + broken, steps: []string{
			"phase=Up", "phase=Broken -> update Up to Broken", "size=1", "phase=Up", "size=2", "phase=Broken -> update Up to Broken",
			"phase=Slow", "phase=Up", "phase=Broken -> update Up to Broken",
		}},
		"an object that begins that way is no change of it": {handler: `causes: [update], ` + broken, steps: []string{
			"phase=Broken", "phase=Up", "phase=Broken -> update Up to Broken",
		}},
		"the first time is a creation for a handler that creates, too": {handler: `causes: [create, update], ` + broken, steps: []string{
			"phase=Up", "phase=Slow", "phase=Broken -> create - to Broken", "phase=Up", "phase=Broken -> update Up to Broken",
		}},
		"a handler of create runs once": {handler: `causes: [create], ` + broken, steps: []string{
			"phase=Up", "phase=Broken -> create - to Broken", "phase=Up", "phase=Broken",
		}},
		"a field that comes, goes and comes again": {handler: `causes: [update], ` + broken, steps: []string{
			"any=y", "phase=Broken -> update - to Broken", "phase=-", "phase=Broken -> update - to Broken",
		}},
		"digests are enough to know it": {handler: `causes: [update], old: false, ` + broken, steps: []string{
			"phase=Up", "phase=Broken -> update - to Broken", "phase=Up", "phase=Broken -> update - to Broken",
		}},
		"a handler that looks at the whole object runs for each change while its when holds": {handler: `causes: [update], when: "self.spec.phase == 'Broken'"`, steps: []string{
			"phase=Up", "size=1", "phase=Broken -> update Up to Broken", "size=2 -> update Broken to Broken", "phase=Up",
			"phase=Broken -> update Up to Broken", "phase=Up size=3", "phase=Broken -> update Broken to Broken",
		}},
		"a when over a label is as any other": {handler: `causes: [update], when: "self.metadata.?labels.?tier.orValue('') == 'gold'"`, field: "metadata.labels.tier", steps: []string{
			"any=y", "tier=gold -> update - to gold", "tier=iron", "tier=gold -> update iron to gold",
		}},
		"an object that labels leave out is compared with what was handled": {handler: `causes: [update], field: spec.size, labels: {tier: gold}`, field: "spec.size", steps: []string{
			"size=1", "size=2", "tier=gold", "size=3 -> update 2 to 3", "tier=iron", "size=4", "size=3", "tier=gold", "tier=iron", "size=4", "tier=gold -> update 3 to 4",
		}},
	})
}

// TestAHandlerThatIsPausedByItsWhenCatchesUp holds the same rule for a when that has nothing to do with what the handler looks at:
// what changed meanwhile is not lost, and what did not change runs nothing.
func TestAHandlerThatIsPausedByItsWhenCatchesUp(t *testing.T) {
	const unpaused = `field: spec.size, when: "self.spec.?paused.orValue('') != 'yes'"`
	update := `causes: [update], ` + unpaused
	playLives(t, map[string]life{
		"a pause without a change":                             {handler: update, field: "spec.size", steps: []string{"size=1", "paused=yes", "paused=no", "size=2 -> update 1 to 2", "paused=yes", "paused=no"}},
		"a change meanwhile":                                   {handler: update, field: "spec.size", steps: []string{"size=1", "paused=yes", "size=2", "any=y", "paused=no -> update 1 to 2"}},
		"changes meanwhile are one":                            {handler: update, field: "spec.size", steps: []string{"size=1", "size=2 -> update 1 to 2", "paused=yes", "size=3", "size=4", "paused=no -> update 2 to 4"}},
		"a change with the end of the pause":                   {handler: update, field: "spec.size", steps: []string{"size=1", "paused=yes", "size=2 paused=no -> update 1 to 2"}},
		"a change that is taken back meanwhile is none":        {handler: update, field: "spec.size", steps: []string{"size=1", "paused=yes", "size=2", "size=1", "paused=no"}},
		"a change that is taken back with the end is a change": {handler: update, field: "spec.size", steps: []string{"size=1", "paused=yes", "size=2", "size=1 paused=no -> update 2 to 1"}},
		"an object that is paused when it is seen first":       {handler: update, field: "spec.size", steps: []string{"size=1 paused=yes", "size=2", "paused=no -> update 1 to 2"}},
		"a creation that is paused":                            {handler: `causes: [create], ` + unpaused, field: "spec.size", steps: []string{"size=1 paused=yes", "size=2", "paused=no -> create - to 2", "paused=yes", "paused=no"}},
		"a creation and a change":                              {handler: `causes: [create, update], ` + unpaused, field: "spec.size", steps: []string{"size=1 -> create - to 1", "paused=yes", "size=2", "paused=no -> update 1 to 2"}},
	})
}

// TestValueFiltersAreAsKopfDocumentsThem holds the forms that from-kopf.md gives for kopf's filters of an update handler against what
// kopf's documentation says of them (docs/filters.rst): value asks about the old and the new value, and one of them is enough; old
// and new ask about one each; each change is asked about by itself.
func TestValueFiltersAreAsKopfDocumentsThem(t *testing.T) {
	const now, then = "self.spec.?phase", "old.?spec.?phase"
	when := func(condition string) string { return `causes: [update], field: spec.phase, when: "` + condition + `"` }
	// steps returns the same changes for all, and the runs that are wanted for them, each by its number.
	changes := []string{"phase=x", "phase=y", "phase=x", "phase=z", "phase=y", "phase=-", "phase=x", "any=b"}
	steps := func(wants map[int]string) []string {
		out := slices.Clone(changes)
		for i, want := range wants {
			out[i] += " -> update " + want
		}
		return out
	}
	playLives(t, map[string]life{
		"field='spec.phase'": {handler: `causes: [update], field: spec.phase`,
			steps: steps(map[int]string{1: "x to y", 2: "y to x", 3: "x to z", 4: "z to y", 5: "y to -", 6: "- to x"})},
		"field='spec.phase', value='x'": {handler: when(then + ".orValue('') == 'x' || " + now + ".orValue('') == 'x'"),
			steps: steps(map[int]string{1: "x to y", 2: "y to x", 3: "x to z", 6: "- to x"})},
		"field='spec.phase', new='x'": {handler: when(now + ".orValue('') == 'x'"),
			steps: steps(map[int]string{2: "y to x", 6: "- to x"})},
		"field='spec.phase', old='x'": {handler: when(then + ".orValue('') == 'x'"),
			steps: steps(map[int]string{1: "x to y", 3: "x to z"})},
		"field='spec.phase', old='x', new='y'": {handler: when(then + ".orValue('') == 'x' && " + now + ".orValue('') == 'y'"),
			steps: steps(map[int]string{1: "x to y"})},
		"field='spec.phase', old=kopf.ABSENT, new=kopf.PRESENT": {handler: when("!" + then + ".hasValue() && " + now + ".hasValue()"),
			steps: steps(map[int]string{6: "- to x"})},
		"field='spec.phase', old=kopf.PRESENT, new=kopf.ABSENT": {handler: when(then + ".hasValue() && !" + now + ".hasValue()"),
			steps: steps(map[int]string{5: "y to -"})},
		// A handler whose when does not ask about old gets as old what it handled last, where kopf has what any handler handled last.
		"field='spec.phase', new=kopf.PRESENT": {handler: when(now + ".hasValue()"),
			steps: steps(map[int]string{1: "x to y", 2: "y to x", 3: "x to z", 4: "z to y", 6: "y to x"})},
		"field='spec.phase', new=kopf.ABSENT": {handler: when("!" + now + ".hasValue()"),
			steps: steps(map[int]string{5: "x to -"})},
		"when=lambda new, **_: new == 'y'": {handler: when("self.spec.?phase == optional.of('y')"),
			steps: steps(map[int]string{1: "x to y", 4: "z to y"})},
	})
}
