// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
)

// chain is a ← b ← c, and d apart, each with the options.
func chain(options string) string {
	one := func(name, needs string) string {
		return name + `: {includeWhen: self.spec.on, ` + options + ` template: {` + thing + `{name: ` + name + `}, spec: {x: "` + needs + `"}}}`
	}
	return "{" + one("a", "") + ", " + one("b", "${children.a.metadata.name}") + ", " +
		one("c", "${children.b.metadata.name}") + ", " + one("d", "") + "}"
}

func TestChildrenGoInTheOrderInWhichTheyCameBackwards(t *testing.T) {
	w := start(t, chain(""), "{on: true}")
	if err := w.run(dsl.Create); err != nil {
		t.Fatal(err)
	}
	w.newCalls()
	w.spec("{on: false}")
	waits(t, w.run(dsl.Update), "Thing c to be gone, Thing d to be gone")
	if want := "Applied=False Waiting: Waiting for Thing c to be gone, Thing d to be gone."; w.said() != want {
		t.Errorf("condition %q, want %q", w.said(), want)
	}
	together(t, w, []string{"delete Thing c", "delete Thing d"})
	waits(t, w.run(dsl.Child), "Thing c to be gone, Thing d to be gone")
	calls(t, w) // what is being deleted is not deleted again
	w.collect()
	waits(t, w.run(dsl.Child), "Thing b to be gone")
	calls(t, w, "delete Thing b")
	w.collect()
	waits(t, w.run(dsl.Child), "Thing a to be gone")
	calls(t, w, "delete Thing a")
	w.collect()
	if err := w.run(dsl.Child); err != nil {
		t.Error(err)
	}
	if want := "Applied=True AllApplied: There is nothing to apply."; w.said() != want {
		t.Errorf("condition %q, want %q", w.said(), want)
	}
}

func TestWhatStaysIsNotDeleted(t *testing.T) {
	tests := map[string]struct {
		options string
		cause   dsl.Cause
		want    []string
	}{
		"orphans are cut loose one after the other":           {"onDelete: orphan,", dsl.Update, []string{"orphan Thing c", "orphan Thing d", "orphan Thing b", "orphan Thing a"}},
		"orphans are cut loose before Kubernetes deletes":     {"onDelete: orphan,", dsl.Delete, []string{"orphan Thing c", "orphan Thing d", "orphan Thing b", "orphan Thing a"}},
		"orphans with a label are cut loose at a deletion":    {"ownership: labelled, onDelete: orphan,", dsl.Delete, []string{"orphan Thing c", "orphan Thing d", "orphan Thing b", "orphan Thing a"}},
		"what is retained is left alone":                      {"onDelete: retain,", dsl.Update, nil},
		"what is retained is left alone at a deletion":        {"ownership: labelled, onDelete: retain,", dsl.Delete, nil},
		"what is not owned is left alone":                     {"ownership: none,", dsl.Update, nil},
		"what Kubernetes deletes is left to it at a deletion": {"", dsl.Delete, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := start(t, chain(test.options), "{on: true}")
			if err := w.run(dsl.Create); err != nil {
				t.Fatal(err)
			}
			w.newCalls()
			w.spec("{on: false}")
			if err := w.run(test.cause); err != nil {
				t.Error(err)
			}
			got := w.newCalls()
			if len(got) > 2 {
				slices.Sort(got[:2])
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if len(w.objects) != 4 {
				t.Errorf("objects %v", w.names())
			}
		})
	}
}

func TestADeletionTakesLabelledChildrenAwayWithoutAnyExpression(t *testing.T) {
	w := start(t, chain("ownership: labelled,"), "{on: true}")
	if err := w.run(dsl.Create); err != nil {
		t.Fatal(err)
	}
	delete(w.self, "spec") // nothing could be worked out from this
	w.newCalls()
	waits(t, w.run(dsl.Delete), "Thing c to be gone, Thing d to be gone")
	w.newCalls()
	for _, next := range []string{"b", "a"} {
		w.collect()
		waits(t, w.run(dsl.Delete), "Thing "+next+" to be gone")
		calls(t, w, "delete Thing "+next)
	}
	w.collect()
	if err := w.run(dsl.Delete); err != nil || w.said() != "" {
		t.Errorf("%v, condition %q", err, w.said())
	}
}

// TestOwnedChildrenGoInOrderWhereThatIsSaid holds which children with an owner reference are deleted before their owner, and in
// which order.
func TestOwnedChildrenGoInOrderWhereThatIsSaid(t *testing.T) {
	tests := map[string]struct {
		config string
		self   string
		want   [][]string
	}{
		"those that need others go first":                    {chain("deleteOrder: reverse,"), "", [][]string{{"c", "d"}, {"b"}, {"a"}}},
		"Kubernetes may delete them side by side":            {chain("deleteOrder: any,"), "", nil},
		"who needs one that says so goes before it":          {only("b"), "", [][]string{{"c"}, {"b"}}},
		"what it needs itself is left to Kubernetes":         {only("c"), "", [][]string{{"c"}}},
		"all stay where the owner is to go without them":     {chain("deleteOrder: reverse,"), "orphan", nil},
		"another finalizer of the owner changes nothing":     {only("c"), "foregroundDeletion", [][]string{{"c"}}},
		"one that stays is passed over":                      {strings.Replace(only("b"), "c: {includeWhen: self.spec.on,", "c: {includeWhen: self.spec.on, onDelete: retain,", 1), "", [][]string{{"b"}}},
		"with a label they go in this order, and are marked": {chain("ownership: labelled, deleteOrder: reverse,"), "", [][]string{{"c", "d"}, {"b"}, {"a"}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := start(t, tt.config, "{on: true}")
			if err := w.run(dsl.Create); err != nil {
				t.Fatal(err)
			}
			metadata := w.self["metadata"].(map[string]any)
			if metadata["deletionTimestamp"] = "2026-01-02T03:04:05Z"; tt.self != "" {
				metadata["finalizers"] = []any{tt.self}
			}
			w.newCalls()
			for _, wave := range tt.want {
				var gone, deleted []string
				for _, child := range wave {
					gone, deleted = append(gone, "Thing "+child+" to be gone"), append(deleted, "delete Thing "+child+" in the foreground")
				}
				waits(t, w.run(dsl.Delete), strings.Join(gone, ", "))
				together(t, w, deleted)
				w.collect()
			}
			if err := w.run(dsl.Delete); err != nil {
				t.Error(err)
			}
			calls(t, w)
		})
	}
}

// only is the chain with an order for one child.
func only(name string) string {
	return strings.Replace(chain(""), name+": {includeWhen: self.spec.on,", name+": {includeWhen: self.spec.on, deleteOrder: reverse,", 1)
}

func TestADeletionThatIsRefusedSaysSo(t *testing.T) {
	w := start(t, chain("ownership: labelled,"), "{on: true}")
	if err := w.run(dsl.Create); err != nil {
		t.Fatal(err)
	}
	w.newCalls()
	w.refused["Thing c"] = errBroken
	if err := w.run(dsl.Delete); text(err) != "Thing c: broken" {
		t.Errorf("error %v", err)
	}
	if want := "Applied=False ApplyFailed: Thing c: broken"; w.said() != want {
		t.Errorf("condition %q, want %q", w.said(), want)
	}
	w.allErr = errBroken
	if err := w.run(dsl.Delete); text(err) != "reading children: broken" {
		t.Errorf("error %v", err)
	}
}

func TestNothingIsPrunedWhileSomethingIsAmiss(t *testing.T) {
	config := `{
		old: {includeWhen: self.spec.on, template: {` + thing + `{name: old}}},
		a: {readyWhen: child.status.ready, template: {` + thing + `{name: "${self.spec.name}"}, spec: {x: "${self.spec.x}"}}}}`
	tests := map[string]func(*world){
		"an object is refused":             func(w *world) { w.refused["Thing a"] = errBroken },
		"something is not ready":           func(w *world) { w.slow["Thing a"] = true },
		"an expression fails":              func(w *world) { w.spec("{on: false, name: a}") },
		"an object belongs to others":      func(w *world) { w.objects["Thing a"].ours = false },
		"an object comes out without name": func(w *world) { w.spec("{on: false, name: '', x: 2}") },
		"the children cannot be read":      func(w *world) { w.allErr = errBroken },
	}
	for name, amiss := range tests {
		t.Run(name, func(t *testing.T) {
			w := start(t, config, "{on: true, name: a, x: 1}")
			if err := w.run(dsl.Create); err != nil {
				t.Fatal(err)
			}
			w.spec("{on: false, name: a, x: 2}")
			amiss(w)
			if err := w.run(dsl.Update); err == nil {
				t.Error("nothing is amiss")
			}
			if w.objects["Thing old"].live.GetDeletionTimestamp() != nil {
				t.Error("it is pruned")
			}
			w.refused, w.allErr = map[string]error{}, nil
			if w.objects["Thing a"] != nil {
				w.objects["Thing a"].ours = true
			}
			w.spec("{on: false, name: a, x: 2}")
			w.collect()
			waits(t, w.run(dsl.Update), "Thing old to be gone")
		})
	}
}

func TestWhatBecameAnotherChildIsNotPruned(t *testing.T) {
	w := start(t, "{a: {"+thing+"{name: x}}}", "{}")
	if err := w.run(dsl.Create); err != nil {
		t.Fatal(err)
	}
	w.configure("{b: {forEach: [x], template: {" + thing + "{name: '${item}'}}}}")
	if err := w.run(dsl.Resume); err != nil {
		t.Fatal(err)
	}
	calls(t, w, "create Thing x", "update Thing x")
}

func TestAChildThatIsNotRecreatedUnderItsNameIsStillTheOldOne(t *testing.T) {
	w := start(t, "{a: {"+thing+"{name: '${self.spec.name}'}}, b: {"+thing+"{name: 'b-${children.a.metadata.name}'}}}", "{name: z}")
	if err := w.run(dsl.Create); err != nil {
		t.Fatal(err)
	}
	w.spec("{name: y}") // a is another object now; the old one has the same place in the configuration
	waits(t, w.run(dsl.Update), "Thing b-z to be gone")
	w.collect()
	waits(t, w.run(dsl.Child), "Thing z to be gone")
	w.collect()
	if err := w.run(dsl.Child); err != nil || !slices.Equal(w.names(), []string{"Thing b-y", "Thing y"}) {
		t.Errorf("%v, objects %v", err, w.names())
	}
}

func TestChildrenOfNamesThatAreGoneGoFirstTheYoungestBeforeTheOthers(t *testing.T) {
	w := start(t, "{x: {forEach: [p, q], template: {"+thing+"{name: '${item}'}}}, y: {"+thing+"{name: 'y${string(size(children.x))}'}}, z: {"+thing+"{name: z}}}", "{}")
	if err := w.run(dsl.Create); err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]int64{"p": 10, "q": 90, "y2": 20, "z": 10} { // q was added later
		w.objects["Thing "+name].live.SetCreationTimestamp(metav1.NewTime(time.Unix(at, 0)))
	}
	w.configure("{z: {includeWhen: 'false', template: {" + thing + "{name: z}}}, n: {" + thing + "{name: n}}}")
	w.newCalls()
	waits(t, w.run(dsl.Resume), "Thing y2 to be gone")
	w.collect()
	waits(t, w.run(dsl.Child), "Thing p to be gone, Thing q to be gone")
	w.collect()
	waits(t, w.run(dsl.Child), "Thing z to be gone")
}

func TestChildrenOfOtherHandlersAreLeftAlone(t *testing.T) {
	w := start(t, "{a: {ownership: labelled, template: {"+thing+"{name: a}}}}", "{}")
	other := map[string]any{"apiVersion": "x.io/v1", "kind": "Thing", "metadata": map[string]any{"name": "o"}}
	if _, err := w.Apply(t.Context(), other, dsl.ChildSpec{Handler: "g", Name: "x", Ownership: dsl.Labelled}); err != nil {
		t.Fatal(err)
	}
	if err := w.run(dsl.Create); err != nil {
		t.Fatal(err)
	}
	waits(t, w.run(dsl.Delete), "Thing a to be gone")
	calls(t, w, "create Thing o", "create Thing a", "delete Thing a")
}
