// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kopf

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/handlers"
)

// Hooks is 13-hooks: a program that logs in by itself, with startups, a cleanup, a probe, and a task for each Pod.
func Hooks(login func(context.Context) (*rest.Config, error)) cmd.Program {
	return cmd.Program{Registry: handlers.Standard(), Extra: []func(*dsl.Operator){hooks}, Login: login}
}

// tasks counts those that run.
type tasks struct{ running atomic.Int64 }

func hooks(op *dsl.Operator) {
	op.Name = "kopf-13-hooks"
	op.OnStartup("startup_fn_simple", func(_ context.Context, r *dsl.Request) error {
		r.Log.Info("The tasks are counted from now on.")
		return nil
	})
	op.OnStartup("startup_fn_retried", func(_ context.Context, r *dsl.Request) error {
		if r.Attempt <= 3 {
			return dsl.Temporary(errors.New("it will work soon"), time.Second)
		}
		r.Log.Info("Startup works now.")
		return nil
	})
	count := &tasks{}
	op.OnCleanup("cleanup_fn", func(_ context.Context, r *dsl.Request) error {
		r.Log.Info("Cleaning up.", "running", count.running.Load())
		return nil
	})
	op.OnHealth("tasks_count", func(context.Context, *dsl.Request) error {
		if count.running.Load() < 0 {
			return errors.New("tasks are counted wrongly")
		}
		return nil
	})
	op.Resource("pods.v1", func(pod *dsl.Resource) {
		pod.Daemon("pod_task", count.serve, dsl.NoFinalizer())
	})
}

// serve is the task of a Pod.
func (c *tasks) serve(ctx context.Context, r *dsl.DaemonRequest) error {
	c.running.Add(1)
	defer c.running.Add(-1)
	for {
		select {
		case <-time.After(time.Duration(1+rand.IntN(10)) * time.Second):
			r.Log.Info("Served by the background task.")
		case <-ctx.Done():
			r.Log.Info("Serving is finished.")
			return nil
		}
	}
}
