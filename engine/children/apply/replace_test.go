// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
)

// TestAMarkSaysWhetherAChildWasMadeFromAnotherTemplate holds which children wait for their deletion, or are recreated.
func TestAMarkSaysWhetherAChildWasMadeFromAnotherTemplate(t *testing.T) {
	const applied = "op.handwerk.dev/applied"
	marked := func(mark string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{}}}
		if mark != "" {
			o.SetAnnotations(map[string]string{applied: mark})
		}
		return o
	}
	for name, test := range map[string]struct {
		live string
		want bool
	}{
		"the same":                              {"handwerk:tied;template:t", false},
		"another name of its handler":           {"handwerk:other;template:t", false},
		"another template":                      {"handwerk:tied;template:other", true},
		"made without update, the same":         {"handwerk:tied", false},
		"made without update, and strictly":     {"handwerk:strict:tied", false},
		"made without update, another template": {"handwerk:other", true},
		"somebody has taken the mark off":       {"", false},
		"it was taken over, and no more":        {"handwerk:", false},
		"it was taken over, the same":           {emptied("handwerk:tied;template:t"), false},
		"it was taken over, another template":   {emptied("handwerk:strict:tied;template:other"), true},
	} {
		for update, want := range map[dsl.UpdatePolicy]bool{dsl.UpdateOnDelete: test.want, dsl.UpdateRecreate: test.want, dsl.UpdateInPlace: false, "": false} {
			a := Applier{Owner: ownership.Owner{Keys: ownership.Keys{Applied: applied}}, Update: update}
			if got := a.fromAnother(marked("handwerk:tied;template:t"), marked(test.live)); got != want {
				t.Errorf("%s, update %q: %t, want %t", name, update, got, want)
			}
		}
	}
}
