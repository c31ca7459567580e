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

// Daemons is 14-daemons: one that is done after half a minute, and one that runs until it is stopped. Both fail three times first.
func Daemons(op *dsl.Operator) {
	op.Name = "kopf-14-daemons"
	op.Resource(Examples, func(kex *dsl.Resource) {
		kex.Daemon("background_sync", func(ctx context.Context, r *dsl.DaemonRequest) error {
			if r.Attempt <= 3 {
				r.Patch.SetStatus("message", fmt.Sprintf("Failed %d times.", r.Attempt))
				return dsl.Temporary(errors.New("this is for show"), time.Second)
			}
			ping(ctx, r, time.After(30*time.Second))
			r.Patch.SetStatus("message", "Accompanying is finished.")
			return nil
		})
		kex.Daemon("background_async", func(ctx context.Context, r *dsl.DaemonRequest) error {
			if r.Attempt <= 3 {
				return dsl.Temporary(errors.New("this is for show"), time.Second)
			}
			ping(ctx, r, nil)
			return nil
		}, dsl.Annotation("someannotation", "somevalue"), dsl.StopWithin(1500*time.Millisecond))
	})
}

// ping logs the field of the object, as it is now, until the end.
func ping(ctx context.Context, r *dsl.DaemonRequest, end <-chan time.Time) {
	for {
		field, _ := dsl.Path{"spec", "field"}.In(r.Current().Object)
		r.Log.Info(fmt.Sprintf("Ping from a daemon: field=%v", field), "attempt", r.Attempt)
		select {
		case <-time.After(5 * time.Second):
		case <-end:
			return
		case <-ctx.Done():
			return
		}
	}
}
