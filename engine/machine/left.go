// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Leave is what takes a machine's book off an object, and the conditions that the machine tells: where the object was is of no
// account when the operator sees it again. It is empty for an object that has no book of its own.
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

// retire takes away conditions that an earlier version of the machine has left behind, or a machine that there is no more: the
// reason is the state that its book names, or what has failed. Nobody declares them, and the API server tells that this operator has set them: both
// is seen to where patches are written. Where code may set conditions that nobody knows of, all stay.
func (x *Run) retire() {
	if !x.Told || x.Gone {
		return
	}
	reasons := append(statesOf(x.object), EnterFailed, DuringFailed, WhenFailed, Looping, StateUnknown)
	for kind, c := range conditionsOf(x.object) {
		if kind != "" && slices.Contains(reasons, c.Reason) {
			x.request.Patch.RetireCondition(kind)
		}
	}
}

// statesOf are the states that an object is in by the books of its own that it has, whoever has which.
func statesOf(o *unstructured.Unstructured) (out []string) {
	status, _ := o.Object["status"].(map[string]any)
	for _, name := range append(slices.Sorted(maps.Keys(status)), "") {
		if b, found := Read(&dsl.Machine{Name: name}, o); found {
			out = append(out, b.State)
		}
	}
	return out
}

// conditionsOf are the conditions of an object by their types.
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
