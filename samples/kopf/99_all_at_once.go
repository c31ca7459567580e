// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kopf

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// AllAtOnce is 99-all-at-once: most kinds of handlers together.
func AllAtOnce(op *dsl.Operator) {
	op.Name = "kopf-99-all-at-once"
	op.OnStartup("startup_fn_simple", func(ctx context.Context, r *dsl.Request) error {
		return pause(ctx, r, "Starting in 1s...", time.Second)
	})
	op.OnStartup("startup_fn_retried", func(_ context.Context, r *dsl.Request) error {
		if r.Attempt <= 3 {
			return dsl.Temporary(errors.New("it will work soon"), time.Second)
		}
		r.Log.Info("Startup works now.")
		return nil
	})
	op.OnCleanup("cleanup_fn", func(ctx context.Context, r *dsl.Request) error {
		return pause(ctx, r, "Cleaning up in 3s...", 3*time.Second)
	})
	op.Resource(Examples, func(kex *dsl.Resource) {
		kex.Owns("pods.v1")
		kex.OnCreate("create_1", createFirst)
		kex.OnCreate("create_2", createSecond)
		kex.OnReconcile("create_pod", createPod)
		kex.OnUpdate("update", func(_ context.Context, r *dsl.Request) error {
			r.Log.Info("Handling the diff", "diff", fmt.Sprint(r.Diff))
			return nil
		})
		kex.OnField("spec.lst", "update_lst", func(_ context.Context, r *dsl.Request) error {
			r.Log.Info(fmt.Sprintf("Handling the field: %v", r.Diff))
			return nil
		})
		kex.OnDelete("delete", func(context.Context, *dsl.Request) error { return nil })
	})
	op.Resource("pods.v1", func(pod *dsl.Resource) {
		pod.OnEvent("example_pod_change", func(_ context.Context, r *dsl.Request) error {
			r.Log.Info("This Pod is special for us.")
			return nil
		}, dsl.Label("application", "kopf-example-10"))
	})
}

// pause says what comes, and lets time pass.
func pause(ctx context.Context, r *dsl.Request, text string, d time.Duration) error {
	r.Log.Info(text)
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func createFirst(_ context.Context, r *dsl.Request) error {
	r.Events.Event(dsl.Normal, "AnyReason", "")
	r.Events.Event(dsl.Warning, "SomeReason", "Cannot do something")
	r.Result(map[string]any{"job1-status": 100})
	return nil
}

func createSecond(ctx context.Context, r *dsl.Request) error {
	if err := pause(ctx, r, "Waiting for something", time.Second); err != nil {
		return err
	}
	if r.Attempt == 1 {
		return errors.New("whoops") // another attempt follows, also in another process
	}
	r.Result(map[string]any{"job2-status": 100})
	return nil
}

func createPod(ctx context.Context, r *dsl.Request) error {
	_, err := r.Children.Apply(ctx, map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": r.Object.GetName() + "-pod", "labels": map[string]any{"application": "kopf-example-10"}},
		"spec": map[string]any{"containers": []any{
			map[string]any{"name": "the-only-one", "image": "busybox", "command": []any{"sh", "-x", "-c", "sleep 1"}},
		}},
	})
	return err
}
