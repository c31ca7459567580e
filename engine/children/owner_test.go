// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestTheFinalizerOfChildren holds when a write of the owner puts the finalizer on for a child.
func TestTheFinalizerOfChildren(t *testing.T) {
	op := dsl.New("demo")
	tests := map[string]struct {
		needs, deleting bool
		finalizers      []string
		adds            bool
	}{
		"no child needs it":                         {false, false, nil, false},
		"a child needs it":                          {true, false, nil, true},
		"a child needs it in addition to another's": {true, false, []string{"other.example.com/finalizer"}, true},
		"the owner has it":                          {true, false, []string{op.Finalizer()}, false},
		"the owner is being deleted already":        {true, true, nil, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			base := &unstructured.Unstructured{Object: map[string]any{}}
			base.SetFinalizers(tt.finalizers)
			w := &ownerWriter{family: &Family{settings: Settings{Operator: op}}, in: &Input{Deleting: tt.deleting}, base: base}
			if tt.needs {
				w.need()
			}
			if marks := w.marks(base); marks.Add != tt.adds || (marks.Finalizer == op.Finalizer()) != tt.adds {
				t.Errorf("marks are %+v", marks)
			}
		})
	}
}

// TestAnAppliedChildIsCopiedForThoseWhoMayChangeIt holds that the reconcile's child is read before the one in the cache, and is copied but for
// those who say that they do not change it.
func TestAnAppliedChildIsCopiedForThoseWhoMayChangeIt(t *testing.T) {
	var l lister
	which, given := id{key: cache.MetaObjectToName(configMap())}, configMap()
	if l.get(nil, which) != nil || !l.empty() || l.has(which) {
		t.Error("a child is there before it was applied")
	}
	l.keep(which, given)
	l.get(nil, which).SetName("another")
	if l.show(nil, which) != given {
		t.Error("the child was copied for nothing")
	}
	if got := l.get(nil, which); got.GetName() != "child" || l.empty() || !l.has(which) {
		t.Errorf("the child is %v", got)
	}
	named := func(o *unstructured.Unstructured) bool { return o.GetName() == "child" }
	other := func(o *unstructured.Unstructured) bool { return !named(o) }
	l.matching(named, false)[0].SetName("another")
	if len(l.matching(named, true)) != 1 || len(l.matching(other, true)) != 0 || !l.some(named) || l.some(other) {
		t.Error("the applied children do not match")
	}
}
