// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Leave returns a patch that removes a machine's progress and conditions from an object, so that it starts over if it
// comes back. The patch is empty for an object without its own progress.
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
