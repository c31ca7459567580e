// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"context"
	"fmt"
)

// Steps makes one handler of several that run in order. A step that fails ends the attempt; the
// next attempt goes on with it and does not repeat those before it, also after a restart where the
// handler's progress is stored on the object. When the handler has something new to see, it begins
// anew.
func Steps(steps ...Func) Func {
	return func(ctx context.Context, r *Request) error {
		for r.Step < len(steps) {
			if err := steps[r.Step](ctx, r); err != nil {
				return fmt.Errorf("step %d of %d: %w", r.Step+1, len(steps), err)
			}
			r.Step++
		}
		return nil
	}
}
