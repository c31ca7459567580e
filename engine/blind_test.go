// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// unseen takes the rights to watch a resource away, and with them the watch that is open.
func (s *stage) unseen(resource string) {
	s.t.Helper()
	s.Forbid("list", resource)
	s.Forbid("watch", resource)
	s.CutWatches(resource)
}

// seen gives them back.
func (s *stage) seen(resource string) {
	s.Allow("list", resource)
	s.Allow("watch", resource)
}

// reported is when the journal has the line, within a minute.
func reported(s *stage, line string) (after time.Duration) {
	s.t.Helper()
	start := time.Now()
	for time.Since(start) < time.Minute {
		s.Advance(time.Second)
		if slices.Contains(s.journal.take(), line) {
			return time.Since(start)
		}
	}
	s.t.Errorf("%q was not reported", line)
	return time.Since(start)
}

// TestCachesThatCannotCatchUp holds that nobody waits for what will not be shown, and that nobody takes
// an old cache for how things are.
func TestCachesThatCannotCatchUp(t *testing.T) {
	keeps := func(foo *dsl.Resource, j *journal) {
		foo.Owns(deployments)
		foo.OnReconcile("child", j.note("child", keepsChild))
		foo.OnReconcile("look", func(_ context.Context, r *dsl.Request) error {
			_, err := r.Children.List(deployments)
			j.add(fmt.Sprint("look: ", err))
			return err
		})
		foo.OnDelete("left", j.note("left"))
	}
	const refused = "look: deployments.apps is forbidden: the operator may not list, watch"
	// written has the operator write to a child that it then cannot see any more.
	written := func(s *stage) {
		s.begin()
		s.HoldWatches(deployments)
		s.size(2)
		s.calls("child update", "look: <nil>")
		s.unseen(deployments)
	}
	scenarios(t, map[string]scenario{
		"an object is deleted though the rights to watch its children were taken away after a write to one": {keeps, func(s *stage) {
			written(s)
			s.remove()
			if after := reported(s, "left delete"); after > 40*time.Second {
				s.t.Errorf("it took %v", after)
			}
			s.gone()
		}},
		"its handlers are told that its children cannot be read, and go on when they can": {keeps, func(s *stage) {
			written(s)
			s.size(3)
			reported(s, refused)
			ill(s, "child/"+foos+"/"+deployments, "forbidden: list, watch")
			s.seen(deployments)
			s.ReleaseWatches(deployments)
			reported(s, "look: <nil>")
			s.Advance(12 * time.Second) // it may have tried again by itself, before the others were told
			if n, _, _ := unstructured.NestedInt64(s.Get(deployments, "default", "web").Object, "spec", "replicas"); n != 3 {
				s.t.Errorf("the child has %d replicas", n)
			}
			well(s)
		}},
		"a short absence is waited for": {keeps, func(s *stage) {
			written(s)
			s.size(3)
			s.Advance(15 * time.Second)
			s.calls()
			s.seen(deployments)
			s.Advance(25 * time.Second)
			s.calls("child update", "look: <nil>")
		}},
		"an object whose own watch is lost waits, for nothing is known of it": {
			func(foo *dsl.Resource, j *journal) { foo.On(both(), "report", j.note("report", reports)) },
			func(s *stage) {
				s.begin()
				s.HoldWatches(foos)
				s.Advance(time.Second)
				s.unseen(foos)
				s.size(2)
				s.Advance(10 * time.Minute)
				s.calls()
				ill(s, "resource/"+foos, "forbidden: list, watch")
				s.seen(foos)
				s.ReleaseWatches(foos)
				s.Advance(25 * time.Second)
				s.calls("report update")
			},
		},
	})
}

// TestARestoredServer holds that nothing is waited for that a server has forgotten: its versions have
// gone back.
func TestARestoredServer(t *testing.T) {
	scenarios(t, map[string]scenario{
		"writes that are forgotten are made again": {keepsOne, func(s *stage) {
			s.begin()
			for i := range int64(20) {
				s.Create(fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: filler-%d}}`, i))
			}
			s.forget()
			restore := s.Snapshot()
			for i := range int64(20) {
				s.Create(fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: other-%d}}`, i))
			}
			s.HoldWatches(deployments, foos)
			s.size(2)
			s.ReleaseWatches(foos)
			s.calls("child update")
			restore()
			s.ReleaseWatches()
			s.Advance(3 * time.Minute)
			s.forget()
			s.size(3)
			s.calls("child update")
			s.size(4)
			s.calls("child update")
			well(s)
		}},
	})
}

// keepsOne keeps a child.
func keepsOne(foo *dsl.Resource, j *journal) {
	foo.Owns(deployments)
	foo.OnReconcile("child", j.note("child", keepsChild))
}
