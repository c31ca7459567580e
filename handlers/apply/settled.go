// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// sources are what a template reads, if that is no more than the handled object and an element of forEach.
type sources struct {
	fields []dsl.Path
	vars   []string
}

// sources returns what the child's template reads; nil if it reads anything else, such as the time, related objects or other
// children. Such a template is rendered in each reconcile, and so are those of a rollout and of update: onDelete, which compare
// all children.
func (p *plan) sources(c *child) *sources {
	if p.final || c.entry || c.rollout != nil || c.spec.Update == dsl.UpdateOnDelete || c.template == nil {
		return nil
	}
	out := &sources{}
	for _, program := range c.template.Programs() {
		if !program.UsesOnly(append(expr.ItemVariables(), expr.Self, expr.Params)...) {
			return nil
		}
		out.fields = append(out.fields, program.Fields(expr.Self)...)
		out.vars = append(out.vars, slices.DeleteFunc(expr.ItemVariables(), func(name string) bool { return !program.Uses(name) })...)
	}
	slices.Sort(out.vars)
	out.vars = slices.Compact(out.vars)
	return out
}

// inputsOf returns a hash of what a child's template reads for an element; zero if that is not known.
func (d *desired) inputsOf(st *state, e expr.Element) uint64 {
	of := st.child.sources
	if of == nil {
		return 0
	}
	if st.inputs == nil {
		st.inputs = make([]any, 0, 2*len(of.fields))
		for _, field := range of.fields {
			value, found, _ := unstructured.NestedFieldNoCopy(d.inputs.owner.Object.Object, field...)
			st.inputs = append(st.inputs, value, found)
		}
		sum, err := plain.Hash(st.inputs)
		if err != nil {
			return 0
		}
		st.inputs = []any{int64(sum)} // it is the same for all elements
	}
	list := append(slices.Clip(st.inputs), e.Key)
	for _, name := range of.vars {
		list = append(list, e.Vars[name])
	}
	sum, err := plain.Hash(list)
	if err != nil {
		return 0
	}
	return max(sum, 1)
}

// settled returns a child that is as it was when it was applied from the same inputs: it need not be rendered and compared.
func (d *desired) settled(c *child, key string, inputs uint64) *dsl.SettledChild {
	if d.known == nil || inputs == 0 {
		return nil
	}
	spec := c.spec
	spec.Key = key
	if out, settled := d.known.Settled(spec, inputs); settled {
		return &out
	}
	return nil
}

// settle notes what the desired objects were made from.
func (p *pass) settle(d *desired) {
	if d.known == nil {
		return
	}
	var all []dsl.SettledInputs
	for _, st := range d.inputs.states {
		for _, o := range st.objects {
			if o.err == nil && o.inputs != 0 {
				all = append(all, dsl.SettledInputs{ChildSpec: o.spec(), Inputs: o.inputs, Size: o.size})
			}
		}
	}
	d.known.Settle(p.id, all)
}

// placeIn returns the place of a settled child. Own is the owner's namespace.
func placeIn(s *dsl.SettledChild, own string) place {
	out := place{s.Kind.Group, s.Kind.Kind, s.Namespace, s.Name}
	if out.namespace == "" {
		out.namespace = own
	}
	return out
}

// read returns the live object; nil if it is not known.
func (o *object) read() *unstructured.Unstructured {
	if o.live == nil && o.settled != nil {
		o.live = o.settled.Read()
	}
	return o.live
}

// uid returns the uid of the live object; empty if it is not known.
func (o *object) uid() types.UID {
	switch {
	case o.live != nil:
		return o.live.GetUID()
	case o.settled != nil:
		return o.settled.UID
	}
	return ""
}
