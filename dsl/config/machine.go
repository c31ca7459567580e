// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// assembly is a machine that is being made from a document.
type assembly struct {
	*watched
	at   path
	form *machine
	// handler has the machine's fields of a handler.
	handler *making
	// all has the joined properties of the code of all states.
	all actions.Built
	// leaves are the functions that the actions of states need at the object's deletion.
	leaves []dsl.Func
}

// machine adds machine i of the resource.
func (w *watched) machine(i int) {
	given := &w.form.Machine.list[i]
	m := &assembly{
		watched: w, at: w.form.Machine.at(w.at, i), form: given,
		handler: &making{level: true, state: given.id(), handler: &handler{
			ID: given.id(), When: given.When, Labels: given.Labels, Annotations: given.Annotations, attempts: attempts{Backoff: given.Backoff, Timeout: given.Timeout},
			Needs: given.Needs, OnFailure: given.OnFailure,
		}},
		all: actions.Built{Needs: []dsl.Need{}, Makers: []string{}, Patches: []string{}, Reads: dsl.KnownReads{Only: true, Complete: true}},
	}
	if w.Has(m.at.Key("onFailure")) && len(given.Deletion) == 0 {
		w.FaultKey(m.at.Key("onFailure"), "is only for machines with states under deletion")
	}
	when, asks, _ := w.filters(m.at, m.handler)
	out := m.model()
	m.all.Reads = m.all.Reads.And(asks)
	h := m.handlerOf(out)
	h.Labels, h.Annotations, h.When = given.Labels, given.Annotations, when
	w.add(m.at, h)
	if len(m.leaves) > 0 {
		w.add(m.at, m.leaver())
	}
	w.sharedConditions(m.at, i)
	w.holdsBook(m.at, given.Name)
}

// leaver returns the handler for what the machine's actions need at the object's deletion, such as taking away
// children that Kubernetes leaves in place.
func (m *assembly) leaver() dsl.Handler {
	out := dsl.Handler{
		ID: m.handler.ID + ".leave", Func: m.composer(m.at).All(m.leaves), Causes: []dsl.Cause{dsl.Delete}, Known: dsl.Known{Action: "takes away what the machine has made"},
		Retries: dsl.Unlimited, Makers: []string{}, Needs: m.all.Needs, NoOld: true, Release: m.form.OnFailure == release,
	}
	if len(m.form.Deletion) > 0 && !out.Release { // its states may look at children that are being deleted
		out.After = []string{m.handler.ID}
	}
	_, out.Declared = m.needs(m.at.Key("needs"), m.handler, &m.all)
	return out
}

// model returns the machine in the engine's type.
func (m *assembly) model() *dsl.Machine {
	out := &dsl.Machine{
		Name: m.form.Name, Initial: m.form.Initial, InitialDeletion: m.form.InitialDeletion,
		AllowCycles: m.form.AllowCycles, Migrate: m.form.Migrate,
	}
	if h := m.form.History; h != nil {
		out.History = *h
		if *h == 0 {
			out.History = -1
		}
	}
	for i := range m.form.States {
		out.States = append(out.States, m.state(m.at.Key("states").Index(i), &m.form.States[i], dsl.Reconcile))
	}
	for i := range m.form.Deletion {
		out.Deletion = append(out.Deletion, m.state(m.at.Key("deletion").Index(i), &m.form.Deletion[i], dsl.Delete))
	}
	return out
}

// state makes a state. Its actions run for the given cause.
func (m *assembly) state(at path, s *state, cause dsl.Cause) dsl.State {
	id := m.handler.ID + "." + s.Name
	h := &making{handler: &handler{ID: id, Causes: []dsl.Cause{cause}}, level: true, state: id, partly: true, sure: slices.Clone(m.handler.sure)}
	seen := map[string]path{}
	out := dsl.State{
		Name: s.Name, Doc: s.Doc, Action: s.does(), Terminal: s.Terminal, Failed: s.Failed, Ready: s.Ready, Condition: s.Condition,
		Enter: m.doing(at.Key("enter"), h, &s.Enter, "enter", seen), During: m.doing(at.Key("during"), h, &s.During, "during", seen),
	}
	out.ExplainCode = explainCode(nil, h.asks)
	if s.Stay != nil {
		out.Stay = m.stay(at.Key("stay"), h, s.Stay)
	}
	if s.Retries != nil {
		out.Retries = &dsl.Budget{Then: s.Retries.Then}
		if s.Retries.AtMost != nil {
			out.Retries.AtMost = *s.Retries.AtMost
		}
	}
	for i := range s.Transitions {
		out.Transitions = append(out.Transitions, m.transition(at.Key("transitions").Index(i), h, &s.Transitions[i]))
	}
	m.repeated(at.Key("transitions"), s.Transitions)
	return out
}

// stay makes the limit of the time in a state.
func (m *assembly) stay(at path, h *making, s *stay) *dsl.Stay {
	out := &dsl.Stay{Then: s.Then}
	at = at.Key("atMost")
	if fixed, err := time.ParseDuration(string(s.AtMost)); err == nil {
		if out.AtMost = fixed; fixed <= 0 {
			m.Fault(at, "must be more than zero")
		}
		return out
	}
	out.Limit = func(*dsl.Subject) (time.Duration, error) { return 0, nil } // so that a fault has no others in its wake
	if !m.Has(at) || m.Faulty(at) {
		return out
	}
	program := m.span(at, "atMost", string(s.AtMost), h)
	if program == nil {
		return out
	}
	m.all.Reads = m.all.Reads.And(program.Reads())
	out.Limit = func(about *dsl.Subject) (time.Duration, error) {
		limit, err := program.Duration(expr.Scope{Subject: about})
		switch {
		case err != nil:
			return 0, fmt.Errorf("evaluating stay.atMost: %w", err)
		case limit == nil:
			return 0, nil
		case *limit <= 0:
			return 0, fmt.Errorf("evaluating stay.atMost: want a duration above zero, and it is %s", *limit)
		}
		return *limit, nil
	}
	return out
}

// doing makes the code for enter or during. A state without that action gets nil.
func (m *assembly) doing(at path, h *making, d *doings, word string, seen map[string]path) dsl.Func {
	if len(d.list) == 0 {
		return nil
	}
	h.restores = word == "during"
	together, each := m.sequence(sequence{of: h, list: d.list, at: d.at(at), named: d.named(word), seen: seen})
	m.handler.needsUnknown = m.handler.needsUnknown || h.needsUnknown
	if together == nil {
		m.loader.refused[m.out] = true
		return func(context.Context, *dsl.Request) error { return nil }
	}
	m.knows(together)
	h.asks = append(h.asks, together.Asks...)
	for i, one := range each {
		m.meddles(d.at(at)(i).Key(d.list[i].action), one.Sets, one.Conditions)
		if slices.Contains(one.Brings, dsl.Delete) {
			m.leaves = append(m.leaves, one.Func)
		}
	}
	switch {
	case len(each) == 1:
		return each[0].Func
	case word == "during":
		return m.composer(at).All(codeOf(each))
	}
	return dsl.Steps(codeOf(each)...)
}

// knows adds the properties of one action.
func (m *assembly) knows(of *actions.Built) {
	m.all.Needs = append(m.all.Needs, of.Needs...)
	for _, cause := range of.Brings {
		if cause != dsl.Delete { // deletions have a handler of their own
			m.all.Brings = append(m.all.Brings, cause)
		}
	}
	m.all.Gated = append(m.all.Gated, of.Gated...)
	if of.Patches == nil {
		m.all.Patches = nil
	} else if m.all.Patches != nil {
		m.all.Patches = append(m.all.Patches, of.Patches...)
	}
	m.all.Sets = append(m.all.Sets, of.Sets...)
	m.all.Conditions = append(m.all.Conditions, of.Conditions...)
	m.all.Reads = m.all.Reads.And(of.Reads)
	if of.Makers == nil {
		m.all.Makers = nil // so they are not known for the machine
	} else if m.all.Makers != nil {
		m.all.Makers = append(m.all.Makers, of.Makers...)
	}
}

// transition makes a way out of a state.
func (m *assembly) transition(at path, h *making, t *transition) dsl.Transition {
	out := dsl.Transition{To: t.To, Manual: t.Manual, Why: t.Why}
	switch t.When {
	case "", "true":
		return out
	case "false":
		m.Fault(at.Key("when"), "it can never be taken (one that only a person takes says manual: true)")
		return out
	}
	asking := *h
	asking.unset = true
	program := m.predicateFor(&asking, at.Key("when"), string(t.When))
	if program == nil {
		out.When = func(*dsl.Subject) (bool, error) { return false, nil } // when has a fault, and the transition must not lack it
		return out
	}
	m.all.Reads = m.all.Reads.And(program.Reads())
	if program.Uses(expr.Now) && m.watched.form.Resync == 0 {
		m.check(at.Key("when"), at.Key("when"), untimely)
	}
	out.When, out.ExplainWhen = holdsOf(program), m.explains(at.Key("when"), "when", program, nil, true)
	if out.Why == "" {
		out.Why = shortened(program.Text())
	}
	return out
}

// untimely warns of a transition that uses the time.
func untimely(shape.Schemas) []error {
	return []error{&shape.Misfit{Warning: true, Message: "nothing has the machine run when the time comes (the stay of a state does, and a resync of the resource looks now and then)"}}
}

// holdsOf makes the filter of a transition. If the expression misses a value of another object, it does not hold yet.
func holdsOf(program *expr.Program) dsl.Predicate {
	return func(s *dsl.Subject) (bool, error) {
		holds, err := program.Bool(expr.Scope{Subject: s})
		switch {
		case errors.Is(err, expr.ErrMissing) && !errors.Is(err, expr.ErrMissingOwn):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("evaluating when: %w", err)
		}
		return holds, nil
	}
}

// shortened shortens an expression to one short line.
func shortened(text string) string {
	const longest = 200
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > longest {
		return string(runes[:longest-1]) + "…"
	}
	return string(runes)
}

// repeated notes transitions with the same expression as an earlier one: they are never taken.
func (m *assembly) repeated(at path, list []transition) {
	first := map[form.Predicate]int{}
	for i, t := range list {
		text := form.Predicate(strings.Join(strings.Fields(string(t.When)), " "))
		if earlier, twice := first[text]; twice && text != "" && text != "true" && text != "false" {
			m.Fault(at.Index(i).Key("when"), "it can never be taken: the transition to %s before it has the same expression (at %s)",
				list[earlier].To, m.where(at.Index(earlier).Key("when")))
			continue
		}
		first[text] = i
	}
}

// handlerOf returns the machine's handler.
func (m *assembly) handlerOf(machine *dsl.Machine) dsl.Handler {
	h := machine.Handler()
	needs, declared := m.needs(m.at.Key("needs"), m.handler, &m.all)
	h.Needs, h.Declared = append(h.Needs, needs...), declared
	known := &h.Known
	known.ExplainWhen = m.handler.explainWhen
	known.Reads, known.Sets, known.Conditions, known.Brings, known.Gated = m.all.Reads, m.all.Sets, m.all.Conditions, m.all.Brings, m.all.Gated
	known.Patches = m.all.Patches
	h.Makers = m.all.Makers
	h.Was, h.Release = m.form.Was, m.form.OnFailure == release
	for _, set := range m.handler.options() {
		set(&h)
	}
	return h
}
