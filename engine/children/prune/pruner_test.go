// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/decide/limits"
)

// sweeping is a reconcile over an owner with one child, which was written by a field manager.
type sweeping struct {
	manager string
	refusal error
	held    time.Duration
	removed []string
}

func (*sweeping) Owns(schema.GroupKind) bool { return true }

func (*sweeping) Log() logr.Logger { return logr.Discard() }

func (s *sweeping) Read(_ context.Context, found dsl.ChildObject) (*unstructured.Unstructured, error) {
	live := found.Object.DeepCopy()
	live.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: s.manager}})
	return live, nil
}

func (s *sweeping) Remove(_ context.Context, gone dsl.ChildObject, why string, _ limits.Cause) (time.Duration, error) {
	if s.refusal == nil && s.held == 0 {
		s.removed = append(s.removed, gone.Name+": "+why)
	}
	return s.held, s.refusal
}

// TestChildrenWithoutAHandlerAreRemoved holds which children a sweep takes away, and when the next one is due.
func TestChildrenWithoutAHandlerAreRemoved(t *testing.T) {
	const why = "c: there is no handler old any more"
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "c", nil)
	tests := map[string]struct {
		child   dsl.ChildSpec
		pass    sweeping
		fails   bool
		removed []string
		again   time.Duration
		done    bool
	}{
		"the handler is there":                       {dsl.ChildSpec{Handler: "keep", Name: "c"}, sweeping{manager: "op"}, false, nil, 0, true},
		"the handler is gone":                        {dsl.ChildSpec{Handler: "old", Name: "c"}, sweeping{manager: "op"}, false, []string{why}, 0, false},
		"the child is retained":                      {dsl.ChildSpec{Handler: "old", Name: "c", OnDelete: dsl.RetainChild}, sweeping{manager: "op"}, false, nil, 0, true},
		"the child is not owned":                     {dsl.ChildSpec{Handler: "old", Name: "c", Ownership: dsl.Unowned}, sweeping{manager: "op"}, false, nil, 0, true},
		"a controller copied the annotation":         {dsl.ChildSpec{Handler: "old", Name: "c"}, sweeping{manager: "copier"}, false, nil, 0, true},
		"the filter of another handler fails":        {dsl.ChildSpec{Handler: "old", Name: "c"}, sweeping{manager: "op"}, true, nil, 0, false},
		"the operator may not remove it":             {dsl.ChildSpec{Handler: "old", Name: "c"}, sweeping{manager: "op", refusal: forbidden}, false, nil, refusedLook, false},
		"a limit holds the deletion":                 {dsl.ChildSpec{Handler: "old", Name: "c"}, sweeping{manager: "op", held: time.Hour}, false, nil, time.Hour, false},
		"the child does not say which handler it is": {dsl.ChildSpec{Name: "c"}, sweeping{manager: "op"}, false, nil, 0, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			child := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c", "namespace": "n", "uid": "1"},
			}}
			s := NewPruner(&dsl.Resource{}, []*dsl.Handler{{ID: "keep", Makers: []string{"keep"}, Declared: true}})
			m := Memory{}
			p := Input{Owner: &unstructured.Unstructured{}, All: []dsl.ChildObject{{ChildSpec: tt.child, Object: child}}, Manager: "op", Run: &tt.pass}
			again, err := s.Prune(t.Context(), &m, p, func(int) bool { return tt.fails })
			if err != nil || again != tt.again || m.Done(false) != tt.done || !slices.Equal(tt.pass.removed, tt.removed) {
				t.Errorf("again in %s, done is %v, removed are %q: %v", again, m.Done(false), tt.pass.removed, err)
			}
		})
	}
}
