// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package daemons_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestADaemonThatFailedIsLoggedWhenItWorksAgain holds when a daemon works again: it has returned, or has run for as long as its
// longest back-off.
func TestADaemonThatFailedIsLoggedWhenItWorksAgain(t *testing.T) {
	runs := func(ctx context.Context, _ *dsl.DaemonRequest) error { <-ctx.Done(); return nil }
	fails := func(context.Context, *dsl.DaemonRequest) error { return scene.ErrAgain }
	const failed, works = `^"level"=0 "msg"="daemon will be run again" `, `^"level"=0 "msg"="daemon works again" .*"handler"="watch" .*"failed"=2$`
	for name, tt := range map[string]struct {
		runs []dsl.DaemonFunc
		want []string
	}{
		"one that returns works again": {[]dsl.DaemonFunc{fails, fails, func(context.Context, *dsl.DaemonRequest) error { return nil }}, []string{failed, works}},
		"one that runs on, too":        {[]dsl.DaemonFunc{fails, fails, runs}, []string{failed, works}},
		"one that fails before that does not": {[]dsl.DaemonFunc{fails, func(context.Context, *dsl.DaemonRequest) error {
			time.Sleep(50 * time.Second)
			return scene.ErrAgain
		}, fails, fails}, []string{failed}},
		"one that fails again later has another line": {[]dsl.DaemonFunc{fails, fails, func(context.Context, *dsl.DaemonRequest) error {
			time.Sleep(2 * time.Minute)
			return scene.ErrAgain
		}}, []string{failed, works, failed}},
		"one that ends its goroutine does not":   {[]dsl.DaemonFunc{fails, func(context.Context, *dsl.DaemonRequest) error { runtime.Goexit(); return nil }, fails}, []string{failed, failed, failed}},
		"one that never failed has nothing said": {[]dsl.DaemonFunc{runs}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			playDaemon(t, func(foo *dsl.Resource, v *vigil) {
				all := tt.runs
				foo.Daemon("watch", func(ctx context.Context, r *dsl.DaemonRequest) error {
					defer v.enter(r)()
					next := all[0]
					if len(all) > 1 {
						all = all[1:]
					}
					return next(ctx, r)
				}, dsl.WithBackoff(10*time.Second, time.Minute))
			}, func(s *scene.Stage, _ *vigil) {
				log := scene.LaunchWithLog(s, `"msg"="daemon w`)
				s.Create(scene.Web)
				s.Advance(3 * time.Minute)
				s.WantLines(log, tt.want...)
			})
		})
	}
}
