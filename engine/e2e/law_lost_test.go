// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

var changes = []dsl.Cause{dsl.Create, dsl.Update}

// TestChangeDuringCycleIsNotLost: of three handlers the second is at work when the spec changes.
func TestChangeDuringCycleIsNotLost(t *testing.T) {
	t.Parallel()
	again := errors.New("once more")
	tests := map[string]struct {
		causes []dsl.Cause
		// third is what the third handler returns in its first attempt.
		third error
		want  []string
	}{
		"the cycle ends": {changes, nil, []string{
			"first create a", "second create a", "third create a", "first update b", "second update b",
		}},
		"the cycle goes on": {changes, dsl.Temporary(again, 500*time.Millisecond), []string{
			"first create a", "second create a", "third create a", "first update b", "second update b", "third create b",
		}},
		"level-triggered": {[]dsl.Cause{dsl.Reconcile}, nil, []string{
			"first create a", "second create a", "third create a", "first update b", "second update b",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, begun, goOn := newStage(t), make(chan struct{}), make(chan struct{})
			var once, failed sync.Once
			s.play(t, func(r *dsl.Resource) {
				r.On(test.causes, "first", s.Note("first", nil))
				r.On(test.causes, "second", s.Note("second", func(context.Context, *dsl.Request) error {
					once.Do(func() { close(begun); <-goOn })
					return nil
				}), dsl.Field("spec.value"))
				r.On(test.causes, "third", s.Note("third", func(_ context.Context, r *dsl.Request) (err error) {
					if r.Object.GetName() == "w" {
						failed.Do(func() { err = test.third })
					}
					return err
				}), dsl.Field("spec.other"))
			})
			s.works.Create(t, work("w", "a"))
			<-begun
			s.works.Patch(t, "w", `{"spec":{"value":"b"}}`)
			close(goOn)
			s.Await(t, len(test.want), "", "w")
			s.quiesce(t, "third")
			if diff := cmp.Diff(test.want, s.said("", "w")); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// TestChangeAndBackIsSeen: what was seen by only some handlers when it was taken back is put right
// with those.
func TestChangeAndBackIsSeen(t *testing.T) {
	t.Parallel()
	s, begun, goOn := newStage(t), make(chan struct{}), make(chan struct{})
	s.play(t, func(r *dsl.Resource) {
		r.On(changes, "first", s.Note("first", nil))
		r.On(changes, "second", s.Note("second", func(_ context.Context, r *dsl.Request) error {
			if r.Object.GetName() == "w" && spec(r.Object, "value") == "b" {
				close(begun)
				<-goOn
			}
			return nil
		}))
	})
	s.works.Create(t, work("w", "a"))
	s.works.Await(t, "w", "its base", settled)
	s.works.Patch(t, "w", `{"spec":{"value":"b"}}`)
	<-begun
	s.works.Patch(t, "w", `{"spec":{"value":"a"}}`)
	close(goOn)
	want := []string{"first create a", "second create a", "first update b", "second update b", "first update a", "second update a"}
	s.Await(t, len(want), "", "w")
	s.quiesce(t, "second")
	if diff := cmp.Diff(want, s.said("", "w")); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// TestSerialPerObject: events, a child's events, resyncs and retries come at once for one object,
// and no two handlers of it ever run at once.
func TestSerialPerObject(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var running, overlaps atomic.Int32
	busy := func(ctx context.Context, r *dsl.Request) error {
		if r.Object.GetName() != "w" {
			return nil
		}
		if running.Add(1) > 1 {
			overlaps.Add(1)
		}
		defer running.Add(-1)
		_, err := r.Children.Apply(ctx, configMap("w", spec(r.Object, "value")))
		for range 3 { // in which another one could begin
			if _, looked := plane.Kubernetes().CoreV1().Namespaces().Get(ctx, s.ns, metav1.GetOptions{}); looked != nil {
				return looked
			}
		}
		if err == nil && r.Attempt < 3 {
			err = dsl.Temporary(errors.New("again"), time.Millisecond)
		}
		return err
	}
	s.play(t, func(r *dsl.Resource) {
		r.Workers, r.Resync = 8, 300*time.Millisecond
		r.Owns(configMaps)
		r.On(changes, "change", s.Note("change", busy))
		r.OnReconcile("level", s.Note("level", busy))
		r.OnResync("resync", s.Note("resync", busy))
		r.OnChild("child", s.Note("child", busy))
	})
	s.works.Create(t, work("w", "0"))
	s.maps.Await(t, "w", "being made", func(*unstructured.Unstructured) bool { return true })
	for i := range 20 {
		s.works.Patch(t, "w", fmt.Sprintf(`{"spec":{"value":"%d"}}`, i+1))
		s.maps.Patch(t, "w", fmt.Sprintf(`{"data":{"more":"%d"}}`, i))
	}
	for _, handler := range []string{"change", "level", "resync", "child"} {
		s.Await(t, 3, handler, "w")
	}
	waitFor(t, "the newest value to be seen by both", func() bool {
		changed, level := s.Of("change", "w"), s.Of("level", "w")
		return valueOf(changed[len(changed)-1]) == "20" && valueOf(level[len(level)-1]) == "20"
	})
	if n := overlaps.Load(); n > 0 {
		t.Errorf("handlers of one object overlapped %d times", n)
	}
}

// TestParallelAcrossObjects: two objects whose handlers wait for each other.
func TestParallelAcrossObjects(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var both sync.WaitGroup
	both.Add(2)
	s.play(t, func(r *dsl.Resource) {
		r.Workers = 2
		r.OnCreate("meet", s.Note("meet", func(context.Context, *dsl.Request) error {
			both.Done()
			both.Wait()
			return nil
		}))
	})
	for _, name := range []string{"a", "b"} {
		s.works.Create(t, work(name, "x"))
	}
	for _, name := range []string{"a", "b"} {
		s.works.Await(t, name, "its base", settled)
	}
}
