// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
)

func TestARecreatedChildIsMadeAgainWhenItIsGone(t *testing.T) {
	w := start(t, "{a: {update: recreate, template: {"+thing+"{name: a}, spec: {v: '${self.spec.v}'}}}}", "{v: '1'}")
	if err := w.run(dsl.Create); err != nil {
		t.Fatal(err)
	}
	w.spec("{v: '2'}")
	w.newCalls()
	waits(t, w.run(dsl.Update), "Thing ns/a: Thing a to be gone, so that it can be made again")
	calls(t, w, "recreate Thing a")
	waits(t, w.run(dsl.Child), "Thing a to be gone, so that it can be made again")
	calls(t, w)
	w.collect()
	if err := w.run(dsl.Child); err != nil {
		t.Fatal(err)
	}
	calls(t, w, "create Thing a")
}

// TestARolloutRecreatesOneAfterTheOther holds that a child counts as unready from its deletion until the new one is ready.
func TestARolloutRecreatesOneAfterTheOther(t *testing.T) {
	w := start(t, `{pods: {forEach: '${self.spec.l}', update: recreate, rollout: `+one+`,
		template: {`+thing+`{name: '${item}'}, spec: {v: '${self.spec.v}'}}}}`, "{v: '1', l: [a, b, c]}")
	if err := w.run(dsl.Create); err != nil {
		t.Fatal(err)
	}
	w.slow["all"] = true
	w.spec("{v: '2', l: [a, b, c]}")
	w.newCalls()
	for _, next := range []string{"a", "b", "c"} {
		_ = w.run(dsl.Update)
		calls(t, w, "recreate Thing "+next)
		_ = w.run(dsl.Child)
		calls(t, w) // it is still going
		w.collect()
		_ = w.run(dsl.Child)
		calls(t, w, "create Thing "+next)
		_ = w.run(dsl.Child)
		calls(t, w) // it is not ready
		w.collect()
	}
	if err := w.run(dsl.Child); err != nil {
		t.Fatal(err)
	}
	calls(t, w)
}

func TestAChildThatIsUpdatedOnDeleteStaysUntilItIsDeleted(t *testing.T) {
	w := start(t, "{a: {update: onDelete, template: {"+thing+"{name: a}, spec: {v: '${self.spec.v}'}}}}", "{v: '1'}")
	if err := w.run(dsl.Create); err != nil {
		t.Fatal(err)
	}
	w.spec("{v: '2'}")
	w.newCalls()
	if err := w.run(dsl.Update); err != nil {
		t.Fatal(err)
	}
	calls(t, w)
	if want := "Applied=True AllApplied: The child is applied. Not updated, as update: onDelete says: Thing a."; w.said() != want {
		t.Errorf("it says %q, want %q", w.said(), want)
	}
	delete(w.objects, "Thing a")
	if err := w.run(dsl.Child); err != nil {
		t.Fatal(err)
	}
	calls(t, w, "create Thing a")
	if want := "Applied=True AllApplied: The child is applied."; w.said() != want {
		t.Errorf("it says %q, want %q", w.said(), want)
	}
}

func TestAPartitionLeavesTheLastChildren(t *testing.T) {
	w := start(t, `{pods: {forEach: '${self.spec.l}', rollout: {maxUnavailable: 1, readyWhen: child.status.ready, partition: '${self.spec.p}'},
		template: {`+thing+`{name: '${item}'}, spec: {v: '${self.spec.v}'}}}}`, "{v: '1', p: 0, l: [a, b, c]}")
	if err := w.run(dsl.Create); err != nil {
		t.Fatal(err)
	}
	w.spec("{v: '2', p: 2, l: [a, b, c, d]}")
	w.newCalls()
	waits(t, w.run(dsl.Update), "the rollout of pods (2 of 4 are still to be updated; not ready: Thing d)")
	calls(t, w, "create Thing d")
	w.collect()
	waits(t, w.run(dsl.Child), "the rollout of pods (1 of 4 are still to be updated; not ready: Thing a)")
	calls(t, w, "update Thing a")
	w.collect()
	if err := w.run(dsl.Child); err != nil {
		t.Fatal(err)
	}
	calls(t, w, "update Thing b")
	if want := "Applied=True AllApplied: All 4 children are applied. Not updated, as rollout.partition says: Thing c."; w.said() != want {
		t.Errorf("it says %q, want %q", w.said(), want)
	}
	w.spec("{v: '2', p: 0, l: [a, b, c, d]}")
	_ = w.run(dsl.Update)
	calls(t, w, "update Thing c")
}

func TestALimitOfARolloutThatIsNoNumberFails(t *testing.T) {
	for _, test := range []struct{ limits, value, want string }{
		{"maxUnavailable: 1, partition: '${self.spec.p}'", "'x'", "child pods: evaluating rollout.partition: want a whole number of at least 0, and it is text"},
		{"maxUnavailable: 1, partition: '${self.spec.p}'", "-1", "child pods: evaluating rollout.partition: want a whole number of at least 0, and it is a number"},
		{"maxUnavailable: '${self.spec.p}'", "0", "child pods: evaluating rollout.maxUnavailable: want a whole number of at least 1, or a percentage from 1% to 100%, and it is a number"},
		{"maxUnavailable: '${self.spec.p}'", "'101%'", "child pods: evaluating rollout.maxUnavailable: want a whole number of at least 1, or a percentage from 1% to 100%, and it is text"},
		{"maxUnavailable: '${self.spec.p}'", "null", "child pods: evaluating rollout.maxUnavailable: want a whole number of at least 1, or a percentage from 1% to 100%, and it is null"},
	} {
		w := start(t, `{pods: {forEach: '${self.spec.l}', rollout: {`+test.limits+`}, template: {`+thing+`{name: '${item}'}}}}`, "{p: "+test.value+", l: [a]}")
		if err := w.run(dsl.Create); text(err) != test.want {
			t.Errorf("%s, where it is %s: %v, want %s", test.limits, test.value, err, test.want)
		}
		calls(t, w)
	}
}

func TestFaultsOfUpdate(t *testing.T) {
	for name, test := range map[string]struct{ config, want string }{
		"a Secret is not recreated":          {"{a: {update: recreate, template: {apiVersion: v1, kind: Secret, metadata: {name: a}}}}", "is not for Secrets"},
		"a Secret is not left":               {"{a: {update: onDelete, template: {apiVersion: v1, kind: Secret, metadata: {name: a}}}}", "is not for Secrets"},
		"what is left has no rollout":        {"{a: {update: onDelete, forEach: '${self.spec.l}', rollout: {maxUnavailable: 1}, template: {" + thing + "{name: '${item}'}}}}", "is not for update: onDelete"},
		"what is not owned is not recreated": {"{a: {update: recreate, ownership: none, template: {" + thing + "{name: a}}}}", "update recreate: an object that is not owned is never deleted"},
		"a partition of Secrets":             {"{a: {forEach: '${self.spec.l}', rollout: {maxUnavailable: 1, partition: 1}, template: {apiVersion: v1, kind: Secret, metadata: {name: '${item}'}}}}", "is not for Secrets"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := build(t, test.config, actions.Build{}); !strings.Contains(text(err), test.want) {
				t.Errorf("it says %v, want %s", err, test.want)
			}
		})
	}
}

// TestARolloutRecreatesNoMoreUnreadyOnesThanMayBe holds that children that are unready already, as after the failure of a node, are
// not all deleted for an update.
func TestARolloutRecreatesNoMoreUnreadyOnesThanMayBe(t *testing.T) {
	w := start(t, `{pods: {forEach: '${self.spec.l}', update: recreate, rollout: `+one+`,
		template: {`+thing+`{name: '${item}'}, spec: {v: '${self.spec.v}'}}}}`, "{v: '1', l: [a, b, c]}")
	if err := w.run(dsl.Create); err != nil {
		t.Fatal(err)
	}
	for _, name := range w.names() {
		w.objects[name].live.Object["status"] = map[string]any{"ready": false}
	}
	w.spec("{v: '2', l: [a, b, c]}")
	w.newCalls()
	_ = w.run(dsl.Update)
	calls(t, w, "recreate Thing a")
	_ = w.run(dsl.Child)
	calls(t, w)
}

// TestARolloutCountsOneThatIsRecreatedForAnImmutableField holds that such a child counts as unready from its deletion until the new
// one is ready.
func TestARolloutCountsOneThatIsRecreatedForAnImmutableField(t *testing.T) {
	w := start(t, `{pods: {forEach: '${self.spec.l}', onImmutable: recreate, rollout: `+one+`,
		template: {`+thing+`{name: '${item}'}, spec: {v: '${self.spec.v}'}}}}`, "{v: '1', l: [a, b, c]}")
	if err := w.run(dsl.Create); err != nil {
		t.Fatal(err)
	}
	w.slow["all"], w.immutable = true, true
	w.spec("{v: '2', l: [a, b, c]}")
	w.newCalls()
	for _, next := range []string{"a", "b", "c"} {
		_ = w.run(dsl.Update)
		calls(t, w, "recreate Thing "+next)
		w.collect()
		_ = w.run(dsl.Child)
		calls(t, w, "create Thing "+next)
		w.collect()
	}
}

// TestAPartitionWaitsForWhatItTakesFromAnotherChild holds that a value which another child does not have yet is waited for, and that
// nothing is updated meanwhile.
func TestAPartitionWaitsForWhatItTakesFromAnotherChild(t *testing.T) {
	w := start(t, `{
		plan: {`+thing+`{name: plan}},
		pods: {forEach: '${self.spec.l}', rollout: {maxUnavailable: 1, partition: '${children.plan.status.kept}'}, template: {`+thing+`{name: '${item}'}, spec: {v: '${self.spec.v}'}}}}`,
		"{v: '1', l: [a, b]}")
	if _, waits := dsl.IsWaiting(w.run(dsl.Create)); !waits {
		t.Error("it does not wait")
	}
	calls(t, w, "create Thing plan")
	w.objects["Thing plan"].live.Object["status"] = map[string]any{"ready": true, "kept": int64(1)}
	if err := w.run(dsl.Child); err != nil {
		t.Fatal(err)
	}
	together(t, w, []string{"create Thing a", "create Thing b"})
	w.spec("{v: '2', l: [a, b]}")
	if err := w.run(dsl.Update); err != nil {
		t.Error(err)
	}
	calls(t, w, "update Thing a")
}

// TestWhatHoldsAChildThatIsToGoIsNamed holds that a rollout that cannot go on says which finalizer is in the way.
func TestWhatHoldsAChildThatIsToGoIsNamed(t *testing.T) {
	w := start(t, `{pods: {forEach: '${self.spec.l}', update: recreate, rollout: `+one+`, template: {`+thing+`{name: '${item}'}, spec: {v: '${self.spec.v}'}}}}`, "{v: '1', l: [a, b]}")
	if err := w.run(dsl.Create); err != nil {
		t.Fatal(err)
	}
	w.objects["Thing a"].live.SetFinalizers([]string{"foregroundDeletion", "example.com/held"})
	w.spec("{v: '2', l: [a, b]}")
	_ = w.run(dsl.Update)
	waits(t, w.run(dsl.Child), "Thing a to be gone, so that it can be made again (it has finalizers: example.com/held), the rollout of pods (1 of 2 are still to be updated; not ready: Thing a)")
	together(t, w, []string{"create Thing a", "create Thing b"}, []string{"recreate Thing a"})
	w.spec("{v: '1', l: [b]}")
	waits(t, w.run(dsl.Update), "Thing a to be gone (it has finalizers: example.com/held)")
}
