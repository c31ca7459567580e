// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/handlers"
)

// keepsAMap is an operator whose handler is known to look at data.value of its child alone.
const keepsAMap = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: law}
resources:
  - resource: works.v1.e2e.example.com
    handlers:
      - id: keep
        apply:
          settings: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}-settings"}, data: {value: "${self.spec.value}"}}
`

// gapOfMaps is a time in which the operator's watch of ConfigMaps shows nothing; the API server has forgotten it when the time is over.
type gapOfMaps struct {
	stage *stage
	hold  *cluster.Hold
}

func (s *stage) beginGap() gapOfMaps {
	return gapOfMaps{s, s.proxy.HoldWatches(cluster.On("watch", "configmaps"))}
}

func (g gapOfMaps) end(t *testing.T) {
	t.Helper()
	if g.stage.proxy.ExpireWatches(cluster.On("watch", "configmaps")) == 0 {
		t.Fatal("no watch has expired")
	}
	g.hold.Release()
}

// keeper returns the operator keepsAMap. Before is called before each run of its handler.
func (s *stage) keeper(t *testing.T, before func(owner string)) *dsl.Operator {
	t.Helper()
	op, err := config.Parse("operator.yaml", []byte(keepsAMap), handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	op.Scope.Namespaces = []string{s.ns}
	for _, h := range op.Handlers() {
		keep := h.Func
		h.Func = func(ctx context.Context, r *dsl.Request) error {
			before(r.Object.GetName())
			return keep(ctx, r)
		}
	}
	return op
}

func dataIs(want string) func(o *unstructured.Unstructured) bool {
	return func(o *unstructured.Unstructured) bool {
		got, _, _ := unstructured.NestedString(o.Object, "data", "value")
		return got == want
	}
}

// TestAChildThatGoesBeforeItsWatchIsBackIsMadeAgain makes a child while its watch shows nothing, and deletes the child before the API
// server is asked for a listing.
func TestAChildThatGoesBeforeItsWatchIsBackIsMadeAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.begin(t, s.keeper(t, func(string) {}))
	gap := s.beginGap()
	s.works.Create(t, work("w", "a"))
	first := s.maps.Await(t, "w-settings", "being made", dataIs("a"))
	s.maps.Delete(t, "w-settings")
	gap.end(t)
	second := s.maps.Await(t, "w-settings", "being made again", dataIs("a"))
	if first.GetUID() == second.GetUID() {
		t.Error("the child was not deleted")
	}
}

// TestAChildThatIsChangedAgainBeforeItsWatchIsBackIsPutBack makes the same change of a child twice. The operator puts the first one back
// while the watch shows nothing, and a listing shows the second one as if nothing had happened.
func TestAChildThatIsChangedAgainBeforeItsWatchIsBackIsPutBack(t *testing.T) {
	t.Parallel()
	s, begun, goOn := newStage(t), make(chan struct{}), make(chan struct{})
	var runs atomic.Int32
	s.begin(t, s.keeper(t, func(owner string) {
		if owner == "w" && runs.Add(1) == 2 {
			close(begun)
			<-goOn
		}
	}))
	s.works.Create(t, work("w", "a"))
	s.maps.Await(t, "w-settings", "being made", dataIs("a"))
	s.maps.Patch(t, "w-settings", `{"data":{"value":"x"}}`)
	<-begun
	gap := s.beginGap()
	close(goOn)
	s.maps.Await(t, "w-settings", "being put back", dataIs("a"))
	s.maps.Patch(t, "w-settings", `{"data":{"value":"x"}}`)
	gap.end(t)
	s.maps.Await(t, "w-settings", "being put back again", dataIs("a"))
}
