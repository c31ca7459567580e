// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/handwerk-dev/handwerk/dsl"
)

// journal counts the runs of handlers.
type journal struct {
	// seen counts the objects that handlers have run for.
	seen *atomic.Int64

	mu      sync.Mutex
	runs    map[ran]dsl.Cause
	objects map[string]bool
	// begun counts the runs that are no matter of time alone.
	begun int
}

// ran is a handler that ran for an object.
type ran struct{ handler, object string }

func newJournal() *journal {
	return &journal{seen: &atomic.Int64{}, runs: map[ran]dsl.Cause{}, objects: map[string]bool{}}
}

// start forgets all runs.
func (j *journal) start() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.runs, j.objects, j.begun = map[ran]dsl.Cause{}, map[string]bool{}, 0
	j.seen.Store(0)
}

// count returns how many runs have begun that are no matter of time alone.
func (j *journal) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.begun
}

// watch makes the handlers of an operator note their runs.
func (j *journal) watch(op *dsl.Operator) {
	for r, h := range op.Handlers() {
		fn := h.Func
		if fn == nil {
			continue
		}
		name := r.Name.Resource + "/" + h.ID
		h.Func = func(ctx context.Context, r *dsl.Request) error {
			j.ran(name, r)
			return fn(ctx, r)
		}
	}
}

// ran notes a run.
func (j *journal) ran(handler string, r *dsl.Request) {
	object := ""
	if r.Object != nil {
		object = nameOf(r.Object.GetKind(), r.Object.GetNamespace(), r.Object.GetName())
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if run := (ran{handler, object}); j.runs[run] == "" { // later runs mostly follow from what the operator itself has done
		j.runs[run] = r.Cause
	}
	if !j.objects[object] {
		j.objects[object] = true
		j.seen.Add(1)
	}
	if r.Cause != dsl.Timer && r.Cause != dsl.Resync {
		j.begun++
	}
}

// handlers returns the handlers that ran with the cause of their first run for an object, sorted.
func (j *journal) handlers() (out []HandlerRun) {
	j.mu.Lock()
	defer j.mu.Unlock()
	counts := map[HandlerRun]int{}
	for r, cause := range j.runs {
		counts[HandlerRun{Handler: r.handler, Cause: string(cause)}]++
	}
	for r, n := range counts {
		r.Objects = n
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b HandlerRun) int {
		return cmp.Or(cmp.Compare(a.Handler, b.Handler), cmp.Compare(a.Cause, b.Cause))
	})
	return out
}
