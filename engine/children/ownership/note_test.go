// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/handwerk-dev/handwerk/engine/decide/drift"
)

// TestANoteIsTheOperatorsOwn holds that the note of a target is the annotation that its manager has written, whoever writes similar ones.
func TestANoteIsTheOperatorsOwn(t *testing.T) {
	const uid = "6f1c2a0e-8a55-4a5e-8d0f-0b6a2c9d1e2f"
	for _, operator := range []string{"op", strings.Repeat("x", 63)} {
		target := Target{Manager: TargetManager(operator, "text", strings.Repeat("k", 63), uid)}
		own, fake, foreign := operator+".handwerk.dev"+noteSuffix(target.Manager), operator+".example.com"+noteSuffix(target.Manager), "other.example.com"+noteSuffix(target.Manager)
		tests := map[string]struct {
			has  []string
			owns string
			want string
			says string
		}{
			"it has none":                            {nil, own, "", ""},
			"it has its own":                         {[]string{own}, own, own, ""},
			"it has its own beside foreign ones":     {[]string{own, fake, foreign}, own, own, ""},
			"it has one of another operator":         {[]string{foreign}, own, "", ""},
			"it owns one that is another operator's": {[]string{foreign}, foreign, "", ""},
			"somebody else has written its own":      {[]string{own}, foreign, "", "somebody else has written annotation " + own},
		}
		for name, tt := range tests {
			t.Run(name, func(t *testing.T) {
				live := &unstructured.Unstructured{Object: map[string]any{}}
				notes := map[string]string{}
				for _, key := range tt.has {
					notes[key] = `{"handwerk":1,"replaced":[]}`
				}
				live.SetAnnotations(notes)
				live.SetManagedFields([]metav1.ManagedFieldsEntry{{
					Manager: target.Manager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1",
					FieldsV1: metav1.NewFieldsV1(fmt.Sprintf(`{"f:metadata":{"f:annotations":{"f:%s":{}}}}`, tt.owns)),
				}})
				if got := target.NoteKey(live); got != tt.want {
					t.Errorf("of %q the key is %q, want %q", slices.Sorted(maps.Keys(notes)), got, tt.want)
				}
				said := ""
				if _, err := target.Replaced(live); err != nil {
					said = err.Error()
				}
				if said != tt.says {
					t.Errorf("it says %q, want %q", said, tt.says)
				}
			})
		}
	}
}

// TestTargetManagersAreKnown holds which field managers patch for an owner, as far as their form says it.
func TestTargetManagersAreKnown(t *testing.T) {
	const uid = "6f1c2a0e-8a55-4a5e-8d0f-0b6a2c9d1e2f"
	long := strings.Repeat("x", 63)
	tests := map[string]bool{
		TargetManager("op", "zone", "", uid): true, TargetManager("op", "zone.step", "a key", uid): true, TargetManager(long, long, long, uid): true,
		"ci/patch/main": false, "ci/patch/main/7": false, "ci/patch/main/" + uid + "/more": false, "kubectl-patch": false, "a/b/patch/zone/" + uid: false,
	}
	for manager, want := range tests {
		if got := isPatcher(manager); got != want {
			t.Errorf("%s is known: %t", manager, got)
		}
	}
	if IsTargetManager("op/patch/main", "op") {
		t.Error("a manager of somebody is an operator's")
	}
}

// TestANoteFitsBesideOtherAnnotations holds that values are left out of a note if the object has no room for them.
func TestANoteFitsBesideOtherAnnotations(t *testing.T) {
	target := Target{Manager: "op/patch/text/u"}
	values := []drift.Replaced{{Path: fieldpath.MakePathOrDie("data", "v"), Was: "before"}}
	for room, fits := range map[int]bool{1000: true, 100: true, 60: false, 0: false} {
		live, fields := &unstructured.Unstructured{Object: map[string]any{}}, &unstructured.Unstructured{Object: map[string]any{}}
		live.SetAnnotations(map[string]string{"large": strings.Repeat("x", 200<<10), "set": strings.Repeat("x", 1<<10)})
		key := "op.handwerk.dev" + noteSuffix(target.Manager)
		fields.SetAnnotations(map[string]string{"set": strings.Repeat("x", 56<<10-len("large"+"set"+key)-room)})
		noted, large := target.Note("op.handwerk.dev", fields, live, values)
		if note := noted.GetAnnotations()[key]; (note != "") != fits || (len(large) == 0) != fits || len(note) > room {
			t.Errorf("in %d bytes the note is %s, without %v", room, note, large)
		}
	}
}
