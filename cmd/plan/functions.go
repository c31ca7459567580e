// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// errUncalled is the error of a handler whose function is not called in a plan. Its words mark what is unknown.
var errUncalled = errors.New("functions in Go are not called in a plan")

// never is when a handler is tried again whose function was not called.
const never = 1000 * time.Hour

// Functions keeps functions in Go from being called, and counts the objects for which they would be. It is safe for use by
// several goroutines.
type Functions struct {
	// allowed are the functions that are called.
	allowed []string

	mu    sync.Mutex
	calls map[call]bool
}

// call is a function that would be called for an object, which is empty for the operator as a whole.
type call struct{ function, object string }

// NewFunctions returns the functions of a plan. A plan calls only functions with an allowed name.
func NewFunctions(allowed []string) *Functions {
	return &Functions{allowed: allowed, calls: map[call]bool{}}
}

// Instead returns what takes the place of a function. Found reports whether the program has it.
func (f *Functions) Instead(fn dsl.Function, found bool) (dsl.Function, bool) {
	if slices.Contains(f.allowed, fn.Name) && found {
		return fn, true
	}
	if !found { // it may be one of a handler or of a daemon, with any parameters
		fn.Params = map[string]any{}
	}
	if fn.Func != nil || !found {
		fn.Func = f.handler(fn.Name)
	}
	if fn.Daemon != nil || !found {
		fn.Daemon = f.daemon(fn.Name)
	}
	if fn.Admission != nil || !found { // webhooks are not called in a twin
		fn.Admission = func(context.Context, *dsl.AdmissionRequest) error { return nil }
	}
	return fn, true
}

// Beside returns a function that adds declarations in Go to an operator as add does, but for their code.
func (f *Functions) Beside(add func(*dsl.Operator)) func(*dsl.Operator) {
	return func(op *dsl.Operator) {
		before := map[*dsl.Handler]bool{}
		for _, h := range handlersOf(op) {
			before[h] = true
		}
		add(op)
		for name, h := range handlersOf(op) {
			if before[h] || slices.Contains(f.allowed, name) {
				continue
			}
			if h.Func != nil {
				h.Func = f.handler(name)
			}
			if h.Daemon != nil {
				h.Daemon.Func = f.daemon(name)
			}
		}
	}
}

// handlersOf yields the handlers and the activities of an operator with their names, as websites/mail.
func handlersOf(op *dsl.Operator) func(yield func(string, *dsl.Handler) bool) {
	return func(yield func(string, *dsl.Handler) bool) {
		for r, h := range op.Handlers() {
			if !yield(r.Name.Resource+"/"+h.ID, h) {
				return
			}
		}
		for _, cause := range []dsl.Cause{dsl.Startup, dsl.Cleanup, dsl.HealthProbe, dsl.ReadyProbe} {
			for _, h := range op.Activities(cause) {
				if !yield(string(cause)+"/"+h.ID, h) {
					return
				}
			}
		}
	}
}

func (f *Functions) handler(name string) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		f.note(name, r.Object)
		switch r.Cause {
		case dsl.Startup, dsl.Cleanup, dsl.HealthProbe, dsl.ReadyProbe:
			return nil // without them, the operator would not begin
		}
		return dsl.Temporary(errUncalled, never)
	}
}

func (f *Functions) daemon(name string) dsl.DaemonFunc {
	return func(ctx context.Context, r *dsl.DaemonRequest) error {
		f.note(name, r.Object)
		<-ctx.Done()
		return nil
	}
}

func (f *Functions) note(function string, o *unstructured.Unstructured) {
	object := ""
	if o != nil {
		object = nameOf(o.GetKind(), o.GetNamespace(), o.GetName())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[call{function, object}] = true
}

// start forgets all calls.
func (f *Functions) start() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.calls)
}

// report returns the functions that would be called, sorted.
func (f *Functions) report() (out []Call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := map[string]int{}
	for c := range f.calls {
		if counts[c.function] += 0; c.object != "" {
			counts[c.function]++
		}
	}
	for name, n := range counts {
		out = append(out, Call{name, n})
	}
	slices.SortFunc(out, func(a, b Call) int { return cmp.Compare(a.Function, b.Function) })
	return out
}

// objects returns the objects for which a function would be called, sorted.
func (f *Functions) objects() (out []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.calls {
		if c.object != "" {
			out = append(out, c.object)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// isUnknown reports whether a text follows from a function that was not called.
func isUnknown(text any) bool {
	s, _ := text.(string)
	return strings.Contains(s, errUncalled.Error())
}

// withoutUnknown removes the conditions from a change that follow from functions that were not called.
func withoutUnknown(c *Change) {
	var conditions []string
	for _, f := range c.Fields {
		if isUnknown(f.After) && strings.HasPrefix(f.Path, "status.conditions[") {
			conditions = append(conditions, f.Path[:strings.Index(f.Path, "]")+1])
		}
	}
	c.Fields = slices.DeleteFunc(c.Fields, func(f Field) bool {
		return slices.ContainsFunc(conditions, func(prefix string) bool { return strings.HasPrefix(f.Path, prefix) })
	})
}
