// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync/atomic"

	"github.com/handwerk-dev/handwerk/dsl"
)

// phase says whether the process works on its resources, and whether it is about to stop.
type phase struct{ working, leaving atomic.Bool }

// works notes that workers begin.
func (p *phase) works() { p.working.Store(true) }

// ends notes that workers take no new keys. The process stops if ctx has ended; otherwise it has lost its leadership.
func (p *phase) ends(ctx context.Context) {
	p.working.Store(false)
	p.leaving.Store(ctx.Err() != nil)
}

// leave notes that the process stops.
func (p *phase) leave() { p.leaving.Store(true) }

// why returns why the daemons of a resource must stop at the end of a term.
func (p *phase) why() dsl.Stop {
	if p.leaving.Load() {
		return dsl.StopShutdown
	}
	return dsl.StopLeadership
}
