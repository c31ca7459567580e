// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
)

// grouped are Things of two templates with one rollout. The second template also needs a ConfigMap.
func grouped(t *testing.T, group string) *world {
	t.Helper()
	rollout := `{maxUnavailable: 1, readyWhen: child.status.ready` + group + `}`
	w := start(t, `{
		config: {`+head+`{name: config}, data: {a: b}},
		left: {
			forEach: '${self.spec.l}', rollout: `+rollout+`,
			template: {`+thing+`{name: 'l${item}'}, spec: {v: '${self.spec.v}'}}},
		right: {
			forEach: '${self.spec.l}', rollout: `+rollout+`,
			template: {`+thing+`{name: 'r${item}'}, spec: {v: '${self.spec.v}', of: '${children.config.metadata.name}'}}}}`,
		"{v: '1', l: [a, b]}")
	if err := w.run(dsl.Create); err != nil {
		t.Fatal(err)
	}
	if w.newCalls(); len(w.objects) != 5 {
		t.Fatalf("objects %v", w.names())
	}
	w.slow["all"] = true
	return w
}

// TestARolloutOfAGroupUpdatesOneOfAllAfterTheOther holds that maxUnavailable counts the children of all templates of a group.
func TestARolloutOfAGroupUpdatesOneOfAllAfterTheOther(t *testing.T) {
	w := grouped(t, ", group: things")
	w.spec("{v: '2', l: [a, b]}")
	waits(t, w.run(dsl.Update), "the rollout of left (1 of 2 are still to be updated; not ready: Thing la), the rollout of right (2 of 2 are still to be updated; not ready: Thing la)")
	calls(t, w, "update Thing la")
	for _, next := range []string{"lb", "ra", "rb"} {
		if err := w.run(dsl.Child); !waiting(err) {
			t.Fatalf("the handler ends with %v, want that it waits", err)
		}
		calls(t, w) // the last one is not ready
		w.collect()
		_ = w.run(dsl.Child)
		calls(t, w, "update Thing "+next)
	}
	w.collect()
	if err := w.run(dsl.Child); err != nil {
		t.Fatal(err)
	}
}

// TestAnUnreadyChildOfAGroupHoldsUpTheOthers holds that one of another template does, too, and not without the group.
func TestAnUnreadyChildOfAGroupHoldsUpTheOthers(t *testing.T) {
	for group, want := range map[string][]string{
		", group: things": {"update Thing rb"},
		"":                {"update Thing la", "update Thing rb"},
	} {
		w := grouped(t, group)
		w.objects["Thing rb"].live.Object["status"] = map[string]any{"ready": false}
		w.spec("{v: '2', l: [a, b]}")
		_ = w.run(dsl.Update)
		calls(t, w, want...)
	}
}

func waiting(err error) bool {
	_, is := dsl.IsWaiting(err)
	return is
}
