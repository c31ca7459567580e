// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// TestWaitingHoldsNothing: a thousand objects wait for their next attempt, an hour later.
func TestWaitingHoldsNothing(t *testing.T) {
	t.Parallel()
	const crowd = 1000
	s := newStage(t)
	running := s.play(t, func(r *dsl.Resource) {
		r.OnReconcile("level", s.Note("level", func(_ context.Context, r *dsl.Request) error {
			if spec(r.Object, "value") == "fails" {
				return dsl.Temporary(errors.New("not yet"), time.Hour)
			}
			return nil
		}))
	})
	s.quiesce(t, "level")
	before := running.Goroutines()
	var making sync.WaitGroup
	for part := range 10 {
		making.Go(func() {
			for i := range crowd / 10 {
				s.works.Create(t, work(fmt.Sprint("w-", part, "-", i), "fails"))
			}
		})
	}
	making.Wait()
	waitFor(t, "all to have failed", func() bool { return s.Len() >= crowd })
	s.quiesce(t, "level")
	if now := running.Goroutines(); before < 5 || now > before+5 {
		t.Errorf("%d goroutines while %d objects wait, %d before", now, crowd, before)
	}
	s.works.Patch(t, "w-0-0", `{"spec":{"value":"works"}}`)
	if got := s.Await(t, 2, "level", "w-0-0")[1]; valueOf(got) != "works" || got.Attempt != 1 {
		t.Errorf("the call after the change is attempt %d with %q", got.Attempt, valueOf(got))
	}
}

// deeds are all ways in which a handler can write by itself.
var deeds = map[string]func(ctx context.Context, r *dsl.Request) error{
	"apply a child": func(ctx context.Context, r *dsl.Request) error {
		_, err := r.Children.Apply(ctx, configMap("late", "x"))
		return err
	},
	"delete a child": func(ctx context.Context, r *dsl.Request) error {
		return r.Children.Delete(ctx, configMaps, "early")
	},
	"create": func(ctx context.Context, r *dsl.Request) error {
		_, err := r.Client.Create(ctx, in(r, configMap("late", "x")))
		return err
	},
	"apply": func(ctx context.Context, r *dsl.Request) error {
		_, err := r.Client.Apply(ctx, in(r, configMap("late", "x")))
		return err
	},
	"patch": func(ctx context.Context, r *dsl.Request) error {
		_, err := r.Client.MergePatch(ctx, configMaps, r.Object.GetNamespace(), "early", map[string]any{"data": nil})
		return err
	},
	"delete": func(ctx context.Context, r *dsl.Request) error {
		return r.Client.Delete(ctx, configMaps, r.Object.GetNamespace(), "early", "")
	},
}

// in puts an object into the request's namespace.
func in(r *dsl.Request, object map[string]any) map[string]any {
	o := &unstructured.Unstructured{Object: object}
	o.SetNamespace(r.Object.GetNamespace())
	return o.Object
}

// TestNoWriteAfterTimeout: a handler goes on with a context of its own when its time is over, or
// when it has returned.
func TestNoWriteAfterTimeout(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	results := make(chan map[string]error, 2)
	attempt := func(r *dsl.Request) {
		got := map[string]error{}
		for name, do := range deeds {
			got[name] = do(context.Background(), r)
		}
		results <- got
	}
	returned := make(chan struct{})
	s.play(t, func(r *dsl.Resource) {
		r.Owns(configMaps)
		r.OnCreate("early", s.Note("early", func(ctx context.Context, r *dsl.Request) error {
			_, err := r.Children.Apply(ctx, configMap("early", "x"))
			return err
		}))
		r.OnCreate("slow", s.Note("slow", func(ctx context.Context, r *dsl.Request) error {
			if r.Attempt > 1 {
				return dsl.Permanent(errors.New("enough"))
			}
			<-ctx.Done()
			attempt(r)
			return ctx.Err()
		}), dsl.Timeout(50*time.Millisecond), dsl.After("early"))
		r.OnCreate("hasty", s.Note("hasty", func(_ context.Context, r *dsl.Request) error {
			go func() {
				<-returned
				attempt(r)
			}()
			return nil
		}), dsl.After("early"))
	})
	s.works.Create(t, work("w", "a"))
	check := func(when string) {
		t.Helper()
		for name, err := range <-results {
			if err == nil {
				t.Errorf("%s: %s was not refused", when, name)
			}
		}
	}
	check("after the timeout")
	s.Await(t, 2, "slow", "w")
	close(returned)
	check("after the return")
	s.works.Await(t, "w", "its base", settled)
	late := s.proxy.Requests(func(r cluster.Request) bool {
		return cluster.On("write", "configmaps")(r) && (r.Name != "early" || r.Verb == "delete") || r.Verb == "create" && r.Resource == "configmaps"
	})
	if len(late) > 0 {
		t.Errorf("requests after the end: %+v", late)
	}
	if n := len(s.proxy.Requests(cluster.On("write", "configmaps"))); n != 1 {
		t.Errorf("%d writes of ConfigMaps, want the one in time", n)
	}
}

// TestWriteUnderWayEndsWithTimeout: a request is on its way to the API server when the time ends.
func TestWriteUnderWayEndsWithTimeout(t *testing.T) {
	t.Parallel()
	for name, do := range deeds {
		if slices.Contains([]string{"delete a child", "patch", "delete"}, name) {
			continue // they need an object that is there
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, never := newStage(t), make(chan struct{})
			s.proxy.Inject(cluster.When{Match: cluster.On("write", "configmaps"), Times: 1}, cluster.Block(never))
			got := make(chan error, 1)
			s.play(t, func(r *dsl.Resource) {
				r.Owns(configMaps)
				r.OnCreate("slow", s.Note("slow", func(_ context.Context, r *dsl.Request) error {
					if r.Attempt > 1 {
						return nil
					}
					err := do(context.Background(), r)
					got <- err
					return err
				}), dsl.Timeout(300*time.Millisecond), dsl.WithBackoff(time.Millisecond, time.Millisecond))
			})
			s.works.Create(t, work("w", "a"))
			if err := <-got; !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
				t.Errorf("the write got %v", err)
			}
			s.Await(t, 2, "slow", "w")
			if s.maps.Get(t, "late") != nil {
				t.Error("the write reached the API server")
			}
		})
	}
}
