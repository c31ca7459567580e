// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	model "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// TestOwnWriteToObjectFirst: the works' stream is held back from before the operator's write until
// after a child's event, which asks for another reconcile.
func TestOwnWriteToObjectFirst(t *testing.T) {
	t.Parallel()
	s, begun, goOn := newStage(t), make(chan struct{}), make(chan struct{})
	running := s.play(t, func(r *dsl.Resource) {
		r.Owns(configMaps)
		r.On(changes, "change", s.Note("change", func(ctx context.Context, r *dsl.Request) error {
			close(begun)
			<-goOn
			_, err := r.Children.Apply(ctx, configMap("w-child", "x"))
			return err
		}))
		r.OnChild("child", s.Note("child", nil))
	})
	s.works.Create(t, work("w", "a"))
	<-begun
	hold := s.proxy.HoldWatches(cluster.On("watch", "works"))
	close(goOn)
	own := s.works.Await(t, "w", "the operator's write", settled)
	hold.Await(t, 1)
	// The operator asks about its rights, and looks for rules that it left behind, in its own time.
	sent := func(r cluster.Request) bool {
		return cluster.On("*", "*")(r) && !strings.HasPrefix(r.Resource, "selfsubject") && !strings.Contains(r.URI, "/admissionregistration.k8s.io/")
	}
	requests := len(s.proxy.Requests(sent))
	for i := range 10 {
		s.maps.Patch(t, "w-child", fmt.Sprintf(`{"data":{"theirs":"%d"}}`, i))
	}
	awaitGauge(t, running, "handwerk_parked_keys", 1)
	if diff := cmp.Diff([]string{"change create a"}, s.said("", "w")); diff != "" {
		t.Errorf("calls while the cache is behind (-want +got):\n%s", diff)
	}
	if now := s.proxy.Requests(sent); len(now) != requests {
		t.Errorf("requests while the key is parked: %+v", now[requests:])
	}
	hold.Release()
	got := s.Await(t, 1, "child", "w")[0].Object.GetResourceVersion()
	if got != own.GetResourceVersion() {
		t.Errorf("the pass after the write saw version %s, want the written %s", got, own.GetResourceVersion())
	}
	awaitGauge(t, running, "handwerk_parked_keys", 0)
}

// TestOwnWriteToChildFirst: the children's stream is held back, and the object changes.
func TestOwnWriteToChildFirst(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	saw := make(chan string, 1)
	running := s.play(t, func(r *dsl.Resource) {
		r.Owns(configMaps)
		r.On(changes, "change", s.Note("change", func(ctx context.Context, r *dsl.Request) error {
			child, err := r.Children.Get(configMaps, "w-child")
			if err != nil {
				return err
			}
			if r.Cause == dsl.Update && child != nil {
				saw <- fmt.Sprint(child.Object["data"])
			}
			_, err = r.Children.Apply(ctx, configMap("w-child", spec(r.Object, "value")))
			return err
		}))
	})
	hold := s.proxy.HoldWatches(cluster.On("watch", "configmaps"))
	mark := plane.Mark(t)
	s.works.Create(t, work("w", "a"))
	s.works.Await(t, "w", "the operator's write", settled)
	hold.Await(t, 1)
	s.works.Patch(t, "w", `{"spec":{"value":"b"}}`)
	awaitGauge(t, running, "handwerk_parked_keys", 1)
	if diff := cmp.Diff([]string{"change create a"}, s.said("", "w")); diff != "" {
		t.Errorf("calls while the cache is behind (-want +got):\n%s", diff)
	}
	hold.Release()
	if got := <-saw; got != "map[value:a]" {
		t.Errorf("the pass after the write saw a child with %s", got)
	}
	s.maps.Await(t, "w-child", "the update", func(o *unstructured.Unstructured) bool {
		value, _, _ := unstructured.NestedString(o.Object, "data", "value")
		return value == "b"
	})
	want := []string{"patch configmaps w-child 201", whole, "patch configmaps w-child 200", whole}
	s.works.Await(t, "w", "the second write", func(o *unstructured.Unstructured) bool { return handledWith(o, "b") })
	if diff := cmp.Diff(want, s.writes(t, mark, "w")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// TestOutsideIsNotWaitedFor: a handler writes to another object of its resource, which the selector
// takes in or leaves out, and the stream is held back.
func TestOutsideIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	for name, parks := range map[string]bool{"inside": true, "outside": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			other := work(name, "o")
			if name == "inside" {
				other.SetLabels(map[string]string{"tier": "gold"})
			}
			s.works.Create(t, other)
			w := work("w", "a")
			w.SetLabels(map[string]string{"tier": "gold"})
			s.works.Create(t, w)
			child := configMap("w-child", "x")
			ready := make(chan struct{})
			running := s.play(t, func(r *dsl.Resource) {
				r.LabelSelector = "tier=gold"
				r.Owns(configMaps)
				r.OnReconcile("level", s.Note("level", func(ctx context.Context, r *dsl.Request) error {
					if r.Object.GetName() != "w" {
						return nil
					}
					if r.Cause != dsl.Child {
						defer close(ready)
						_, err := r.Children.Apply(ctx, child)
						return err
					}
					patch := map[string]any{"spec": map[string]any{"by": string(r.Object.GetUID())}}
					_, err := r.Client.MergePatch(ctx, works, s.ns, name, patch)
					return err
				}))
			})
			<-ready
			hold := s.proxy.HoldWatches(cluster.On("watch", "works"))
			s.maps.Patch(t, "w-child", `{"data":{"theirs":"1"}}`)
			s.works.Await(t, name, "the handler's write", func(o *unstructured.Unstructured) bool { return spec(o, "by") != "" })
			s.maps.Patch(t, "w-child", `{"data":{"theirs":"2"}}`)
			if parks {
				awaitGauge(t, running, "handwerk_parked_keys", 1)
				if n := len(s.Of("level", "w")); n != 2 {
					t.Errorf("%d calls while the cache is behind, want 2", n)
				}
				hold.Release()
			}
			s.Await(t, 3, "level", "w")
			hold.Release()
		})
	}
}

// awaitGauge waits until a metric of the works has a value.
func awaitGauge(t *testing.T, running *cluster.Running, name string, want float64) {
	t.Helper()
	waitFor(t, fmt.Sprintf("%s to be %v", name, want), func() bool { return gauge(t, running, name) == want })
}

// gauge is the sum of a metric over resources.
func gauge(t *testing.T, running *cluster.Running, name string) (sum float64) {
	t.Helper()
	for _, metric := range metrics(t, running, name) {
		sum += metric.GetGauge().GetValue()
	}
	return sum
}

// counter is the sum of a metric's series that have the label.
func counter(t *testing.T, running *cluster.Running, name, label, value string) (sum float64) {
	t.Helper()
	for _, metric := range metrics(t, running, name) {
		for _, pair := range metric.GetLabel() {
			if pair.GetName() == label && pair.GetValue() == value {
				sum += metric.GetCounter().GetValue()
			}
		}
	}
	return sum
}

func metrics(t *testing.T, running *cluster.Running, name string) []*model.Metric {
	t.Helper()
	families, err := running.Metrics.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()
		}
	}
	return nil
}
