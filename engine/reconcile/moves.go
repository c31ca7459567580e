// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/reconcile/machine"
)

// Machines are the state machines of one resource. Its methods are safe for concurrent use, if each object is used by
// one goroutine.
type Machines struct {
	*machine.Census
	resource *dsl.Resource
	// prefix is the prefix of the operator's annotations.
	prefix string
	// declared: the conditions of all handlers are known from their declarations.
	declared bool
}

// NewMachines returns the machines of a resource, outside of a term.
func NewMachines(op *dsl.Operator, r *dsl.Resource, m *ops.Metrics) *Machines {
	out := &Machines{resource: r, prefix: op.Prefix()}
	out.declared = !slices.ContainsFunc(r.Handlers(), func(h *dsl.Handler) bool { return !h.ResourceWide && !h.Known.Reads.Only })
	out.Census = machine.NewCensus(out.but(nil))
	for _, one := range out.but(nil) {
		m.DeclareMachine(r.Name.String(), one)
	}
	return out
}

// but returns the machines of all handlers but one.
func (a *Machines) but(of *dsl.Handler) (out []*dsl.Machine) {
	for _, h := range a.resource.Machines() {
		if h != of {
			out = append(out, h.Machine)
		}
	}
	return out
}

// Any reports whether there is one.
func (a *Machines) Any() bool { return len(a.resource.Machines()) > 0 }

// Left returns a patch that removes the machines' progress and conditions from an object that the operator no longer
// selects. If the object comes back, it is new.
func (a *Machines) Left(o *unstructured.Unstructured) *dsl.Patch {
	out := dsl.NewPatch()
	for _, m := range a.but(nil) {
		out.Join(machine.Leave(m, o))
	}
	return out
}

// resolver returns the patch of an attempt's handler without transformations.
type resolver func(o *unstructured.Unstructured, j *Attempt, wants *dsl.Patch) (*dsl.Patch, error)

// Code returns the handler that runs a machine's attempt; the attempt gets the result. If the attempt already has a
// result from this reconcile, the server has rejected that. Gone: the cache does not show the object.
func (a *Machines) Code(j *Attempt, m *ObjectState, gone bool, resolve resolver) *dsl.Handler {
	h := j.Reader.Handler
	in := machine.Input{
		Handler: h, Others: a.but(h), Prefix: a.prefix, Early: !j.Record.Early.IsZero(), Known: m.Done[h.ID], Before: j.Machine, Gone: gone, Declared: a.declared,
	}
	in.Resolve = func(o *unstructured.Unstructured, p *dsl.Patch) (*dsl.Patch, error) {
		return resolve(o, j, p)
	}
	out := *h
	out.Timeout = 0 // each action has its own
	out.Func = func(ctx context.Context, r *dsl.Request) error {
		result, err := machine.Run(ctx, in, r)
		j.Machine = &result
		return err
	}
	return &out
}

// Did remembers the work of a machine until it is written.
func (a *Machines) Did(j *Attempt, m *ObjectState) {
	if j.Machine != nil {
		a.remember(j.Reader.ID, j.Machine.Done, m)
	}
}

func (a *Machines) remember(id string, done machine.Done, m *ObjectState) {
	if done == (machine.Done{}) {
		return
	}
	if m.Done == nil {
		m.Done = map[string]machine.Done{}
	}
	m.Done[id] = done
}

// label returns a state for metrics. Unknown states in a status share one label, because anybody can write them.
func label(j *Attempt, state string) string {
	declared, _ := j.Reader.Machine.State(state)
	if _, was := j.Reader.Machine.Migrate[state]; declared == nil && !was {
		return machine.StateUnknown
	}
	return state
}

// Finished remembers the work that the machines have sent with the write, and counts the object by its written state.
// Written is nil if the reconcile has written nothing.
func (a *Machines) Finished(written *unstructured.Unstructured, attempts Attempts, m *ObjectState) {
	for _, j := range attempts {
		if j.Machine != nil && j.Ran {
			delete(m.Done, j.Reader.ID)
			a.remember(j.Reader.ID, j.Machine.Sent, m)
		}
	}
	if written != nil {
		a.Note(cache.MetaObjectToName(written), written)
	}
}
