// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Waiting returns how many objects keys of the engine's resources wait for, for tests of what is left
// over when nothing waits.
func Waiting(e *Engine) (n int) {
	for r := range e.resources.All {
		n += r.box.Awaited()
	}
	return n
}

// StartResource has a running engine work on a resource.
func StartResource(e *Engine, spec *dsl.Resource) error { return e.start(spec) }

// StopResource has a running engine work on a resource no more, and returns when nothing of it runs.
func StopResource(ctx context.Context, e *Engine, name string) {
	for r := range e.resources.All {
		if r.name == name {
			e.stop(ctx, r)
		}
	}
}
