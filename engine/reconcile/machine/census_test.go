// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// TestCensus holds that each object is counted once for each machine, in the state that a reconcile has seen last.
func TestCensus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, door := twoStates(dsl.State{}), dsl.Machine{Name: "door", States: []dsl.State{{Name: "Open"}}}
		c := NewCensus([]*dsl.Machine{&m, &door})
		note := func(name, state string, since time.Duration) {
			o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"uid": "u"}}}
			o.Object["status"] = Book{State: state, Since: time.Now().Add(-since)}.tree("u")
			c.Note(cache.ObjectName{Name: name}, o)
		}
		note("early", "Up", 0)
		if got := c.Stats(); got != nil {
			t.Errorf("outside of a term it counts %v", got)
		}
		c.Begin()
		note("a", "Up", time.Hour)
		note("a", "Down", time.Minute) // it has moved
		note("b", "Down", time.Hour)
		note("c", "Odd", time.Minute)
		note("d", "Up", time.Minute)
		c.Note(cache.ObjectName{Name: "d"}, nil) // it is gone
		want := []ops.StateStats{
			{Machine: "machine", State: "Up"}, {Machine: "machine", State: "Down", Objects: 2, Oldest: begins.Add(-time.Hour).Local()},
			{Machine: "machine", State: "Lost"}, {Machine: "machine", State: StateUnknown, Objects: 1, Oldest: begins.Add(-time.Minute).Local()},
			{Machine: "door", State: "Open"},
		}
		if diff := cmp.Diff(want, c.Stats()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		c.End()
		if got := c.Stats(); got != nil {
			t.Errorf("after the term it counts %v", got)
		}
	})
}
