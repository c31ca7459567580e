// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Leave returns a patch that removes a machine's book and conditions from an object. When the operator sees the
// object again, its earlier state must not count. It is empty for an object without its own book.
func Leave(m *dsl.Machine, o *unstructured.Unstructured) *dsl.Patch {
	out := dsl.NewPatch()
	if _, found := Read(m, o); !found {
		return out
	}
	found, _ := m.Book().In(o.Object)
	book, _ := found.(map[string]any)
	others := maps.Clone(book)
	for _, field := range m.BookFields() {
		out.RemoveStatus(field[1:].String())
		delete(others, field[len(field)-1])
	}
	if m.Name != "" && len(others) == 0 {
		out.RemoveStatus(m.Name)
	}
	for _, kind := range append(m.Conditions(), m.ReadyCondition(true), m.ReadyCondition(false)) {
		out.RetireCondition(kind)
	}
	return out
}

// retire removes conditions of an earlier version of the machine, or of a former machine: their reason is the state
// in that machine's book, or a failure. When the patch is written, it is also checked that nothing declares the
// condition and that this operator has set it. If some code may set unknown conditions, all stay.
func (x *Run) retire() {
	if !x.Told || x.Gone {
		return
	}
	all := conditionsOf(x.object)
	reasons := x.reasons(all)
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		if kind != "" && slices.Contains(reasons, all[kind].Reason) {
			x.request.Patch.RetireCondition(kind)
		}
	}
}

// reasons returns the reasons of machines' conditions on the object. The cache may lack the book of a former
// machine, but its own condition has the state.
func (x *Run) reasons(all map[string]metav1.Condition) []string {
	out := []string{EnterFailed, DuringFailed, WhenFailed, Looping, StateUnknown}
	for _, m := range append(slices.Clip(x.Others), x.machine) {
		if b, found := Read(m, x.object); found {
			out = append(out, b.State)
		}
	}
	for kind, c := range all {
		if of, is := strings.CutSuffix(kind, dsl.Ready); is && of != "" {
			out = append(out, c.Reason)
		}
	}
	return out
}

// conditionsOf returns an object's conditions by type.
func conditionsOf(o *unstructured.Unstructured) map[string]metav1.Condition {
	out := map[string]metav1.Condition{}
	list, _, _ := unstructured.NestedFieldNoCopy(o.Object, "status", "conditions")
	items, _ := list.([]any)
	for _, item := range items {
		c, _ := item.(map[string]any)
		text := func(key string) string {
			s, _ := c[key].(string)
			return s
		}
		out[text("type")] = metav1.Condition{
			Type: text("type"), Status: metav1.ConditionStatus(text("status")), Reason: text("reason"), Message: text("message"),
		}
	}
	return out
}
