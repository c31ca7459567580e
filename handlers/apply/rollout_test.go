// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

// rolling is five Things of version v, and a ConfigMap that needs them.
func rolling(t *testing.T, rollout string) *world {
	t.Helper()
	w := start(t, `{
		pods: {
			forEach: '${self.spec.l}', rollout: `+rollout+`,
			template: {`+thing+`{name: '${item}'}, spec: {v: '${self.spec.v}'}}},
		after: {`+head+`{name: after}, data: {v: '${self.spec.v}', n: '${string(size(children.pods))}'}}}`,
		"{v: '1', l: [a, b, c, d, e]}")
	if err := w.run(dsl.Create); err != nil {
		t.Fatal(err)
	}
	if w.newCalls(); len(w.objects) != 6 {
		t.Fatalf("objects %v", w.names())
	}
	w.slow["all"] = true
	return w
}

const one = "{maxUnavailable: 1, readyWhen: child.status.ready}"

func TestARolloutUpdatesOneAfterTheOther(t *testing.T) {
	w := rolling(t, one)
	w.spec("{v: '2', l: [a, b, c, d, e]}")
	waits(t, w.run(dsl.Update), "the rollout of pods (4 of 5 are still to be updated; not ready: Thing a)")
	calls(t, w, "update Thing a")
	waits(t, w.run(dsl.Child), "the rollout of pods (4 of 5 are still to be updated; not ready: Thing a)")
	calls(t, w) // a does not become ready: nothing goes on
	for _, next := range []string{"b", "c", "d"} {
		w.collect()
		if _, ok := dsl.IsWaiting(w.run(dsl.Child)); !ok {
			t.Fatal("it does not wait")
		}
		calls(t, w, "update Thing "+next)
	}
	w.collect()
	if err := w.run(dsl.Child); err != nil {
		t.Fatal(err)
	}
	calls(t, w, "update Thing e", "update ConfigMap after") // what needs them comes last
}

func TestARolloutCounts(t *testing.T) {
	tests := map[string]struct {
		rollout string
		down    []string // are not ready before it begins
		gone    []string
		list    string
		want    []string
	}{
		"two at a time":                                  {"{maxUnavailable: 2, readyWhen: child.status.ready}", nil, nil, "[a, b, c, d, e]", []string{"update Thing a", "update Thing b"}},
		"a part, rounded up":                             {"{maxUnavailable: 21%, readyWhen: child.status.ready}", nil, nil, "[a, b, c, d, e]", []string{"update Thing a", "update Thing b"}},
		"a part that is less than one":                   {"{maxUnavailable: 1%, readyWhen: child.status.ready}", nil, nil, "[a, b, c, d, e]", []string{"update Thing a"}},
		"as many as the object says":                     {"{maxUnavailable: '${size(self.spec.l) - 3}', readyWhen: child.status.ready}", nil, nil, "[a, b, c, d, e]", []string{"update Thing a", "update Thing b"}},
		"a part that the object says":                    {"{maxUnavailable: '${string(size(self.spec.l) * 5)}%', readyWhen: child.status.ready}", nil, nil, "[a, b, c, d, e]", []string{"update Thing a", "update Thing b"}},
		"all":                                            {"{maxUnavailable: 100%, readyWhen: child.status.ready}", nil, nil, "[a, b]", []string{"update Thing a", "update Thing b"}},
		"one that is unready counts":                     {"{maxUnavailable: 2, readyWhen: child.status.ready}", []string{"c"}, nil, "[a, b, c]", []string{"update Thing c", "update Thing a"}},
		"those that are unready go at once":              {one, []string{"c", "d"}, nil, "[a, b, c, d]", []string{"update Thing c", "update Thing d"}},
		"one that is missing is made freely, and counts": {one, nil, []string{"c"}, "[a, b, c]", []string{"create Thing c"}},
		"one that is new is made freely, and counts":     {one, nil, nil, "[a, b, n]", []string{"create Thing n"}},
		"one that is new beside two that may be unready": {"{maxUnavailable: 2, readyWhen: child.status.ready}", nil, nil, "[a, b, n]", []string{"create Thing n", "update Thing a"}},
		"one that is wanted no more does not":            {one, []string{"e"}, nil, "[a, b, c]", []string{"update Thing a"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := rolling(t, test.rollout)
			for _, down := range test.down {
				w.objects["Thing "+down].live.Object["status"] = map[string]any{"ready": false}
			}
			for _, gone := range test.gone {
				delete(w.objects, "Thing "+gone)
			}
			w.spec("{v: '2', l: " + test.list + "}")
			_ = w.run(dsl.Update)
			got := w.newCalls()
			if test.list == "[a, b]" {
				got = got[:2] // and then what needs them
			}
			sortPairs(got)
			sortPairs(test.want)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// sortPairs sorts two calls that are made side by side.
func sortPairs(calls []string) {
	if len(calls) == 2 && calls[0] > calls[1] {
		calls[0], calls[1] = calls[1], calls[0]
	}
}

func TestARolloutDoesNotTakeAnOldStatusForReady(t *testing.T) {
	w := rolling(t, one)
	w.slow = map[string]bool{}
	w.spec("{v: '2', l: [a, b, c, d, e]}")
	waits(t, w.run(dsl.Update), "the rollout of pods (4 of 5 are still to be updated; not ready: Thing a)")
	w.objects["Thing a"].live.SetGeneration(7) // its controller has not looked at it yet
	w.newCalls()
	waits(t, w.run(dsl.Child), "the rollout of pods (4 of 5 are still to be updated; not ready: Thing a)")
	calls(t, w)
}

func TestARolloutLooksAgainSoonAfterAnUpdate(t *testing.T) {
	w := rolling(t, one)
	w.spec("{v: '2', l: [a, b, c, d, e]}")
	if most, _ := dsl.IsWaiting(w.run(dsl.Update)); most.Seconds() != 10 {
		t.Errorf("it looks again after %s", most)
	}
	if most, _ := dsl.IsWaiting(w.run(dsl.Child)); most != time.Minute {
		t.Errorf("without an update it looks again after %s", most)
	}
}

func TestARolloutOfWhatHasNoStatusDoesNotWait(t *testing.T) {
	w := start(t, "{a: {forEach: [x, y, z], rollout: {maxUnavailable: 1}, template: {"+head+"{name: '${item}'}, data: {v: '${self.spec.v}'}}}}", "{v: '1'}")
	if err := w.run(dsl.Create); err != nil {
		t.Fatal(err)
	}
	w.newCalls()
	w.spec("{v: '2'}")
	if err := w.run(dsl.Update); err != nil {
		t.Fatal(err)
	}
	calls(t, w, "update ConfigMap x", "update ConfigMap y", "update ConfigMap z")
}

func TestARolloutStopsAtWhatIsRefused(t *testing.T) {
	w := rolling(t, one)
	w.refused["Thing a"] = errBroken
	w.spec("{v: '2', l: [a, b, c, d, e]}")
	if err := w.run(dsl.Update); text(err) != "Thing a: broken" {
		t.Errorf("error %v", err)
	}
	calls(t, w, "refuse Thing a")
}

// TestARolloutStopsAtAMissingOneThatIsRefused holds that a child which somebody has deleted, and which cannot be made again, counts as
// unready.
func TestARolloutStopsAtAMissingOneThatIsRefused(t *testing.T) {
	w := rolling(t, one)
	delete(w.objects, "Thing c")
	w.refused["Thing c"] = errBroken
	w.spec("{v: '2', l: [a, b, c]}")
	if err := w.run(dsl.Update); text(err) != "Thing ns/c: broken" {
		t.Errorf("error %v", err)
	}
	calls(t, w, "refuse Thing c")
}

func TestAnObjectOfSomebodyElseIsNoPartOfARollout(t *testing.T) {
	w := rolling(t, one)
	w.objects["Thing a"].ours = false
	w.spec("{v: '2', l: [a, b, c, d, e]}")
	err := w.run(dsl.Update)
	if want := "Thing ns/a: it is there and was not made for this object: delete it, give the child another name, or take it over with adopt: ifUnowned"; text(err) != want {
		t.Errorf("error %v", err)
	}
	calls(t, w, "update Thing b")
}

func TestNothingIsPrunedBeforeARolloutIsThrough(t *testing.T) {
	w := rolling(t, one)
	w.spec("{v: '2', l: [a, b]}")
	waits(t, w.run(dsl.Update), "the rollout of pods (1 of 2 are still to be updated; not ready: Thing a)")
	calls(t, w, "update Thing a")
	w.collect()
	waits(t, w.run(dsl.Child), "Thing c to be gone, Thing d to be gone, Thing e to be gone")
}

func TestARolloutReportsThatItCannotReadWhatIsReady(t *testing.T) {
	w := rolling(t, "{maxUnavailable: 1, readyWhen: child.status}")
	w.spec("{v: '2', l: [a, b]}")
	want := "Thing a: evaluating rollout.readyWhen: the result is a map, want true or false; " +
		"Thing b: evaluating rollout.readyWhen: the result is a map, want true or false"
	if err := w.run(dsl.Update); text(err) != want {
		t.Errorf("error %v", err)
	}
}

// TestARolloutWaitsForControllersThatLag holds that objects which their controllers have yet to look at
// are not taken for broken ones, which are changed at once.
func TestARolloutWaitsForControllersThatLag(t *testing.T) {
	w := start(t, `{a: {forEach: "${self.spec.list}", rollout: {maxUnavailable: 1, readyWhen: child.status.ready},
		template: {`+thing+`{name: "${item}"}, spec: {v: "${self.spec.v}"}}}}`, "{list: [a, b, c], v: '1'}")
	if err := w.run(dsl.Create); err != nil {
		t.Fatal(err)
	}
	w.newCalls()
	for _, name := range w.names() {
		w.objects[name].live.SetGeneration(2) // somebody has changed something, and its controller has not looked
	}
	w.spec("{list: [a, b, c], v: '2'}")
	if _, waits := dsl.IsWaiting(w.run(dsl.Update)); !waits {
		t.Error("it does not wait")
	}
	calls(t, w)
	w.collect()
	_ = w.run(dsl.Child)
	calls(t, w, "update Thing a")
}

// TestARolloutAsksWhatItsChildAsks holds that a rollout that does not say when an object is ready goes by the child's own
// readyWhen.
func TestARolloutAsksWhatItsChildAsks(t *testing.T) {
	w := rolling(t, "{maxUnavailable: 1}, readyWhen: child.status.ready")
	w.spec("{v: '2', l: [a, b, c, d, e]}")
	waits(t, w.run(dsl.Update), "Thing a to be ready, the rollout of pods (4 of 5 are still to be updated; not ready: Thing a)")
	calls(t, w, "update Thing a")
}
