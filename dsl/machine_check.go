// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/handwerk-dev/handwerk/dsl/words"
)

var (
	machineName = regexp.MustCompile(`^[a-z][A-Za-z0-9]{0,62}$`)
	stateName   = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)
)

// errForMachines is the error for an option that machines cannot have.
var errForMachines = errors.New("is not for machines")

// checkMachine reports faults of a machine and of its handler.
func (h *Handler) checkMachine(c check, earlier []*Handler) {
	m := h.Machine
	if m == nil {
		return
	}
	if h.Func != nil || h.Daemon != nil {
		c.fault("machine", "a machine has no other code")
	}
	h.checkMachineOptions(c)
	m.checkName(c, earlier)
	if c.Resource.Cache == CacheMetadata {
		c.fault("machine", "cache metadata does not hold the status, where its book is")
	}
	for _, path := range m.BookFields() {
		covers := func(kept Path) bool { return kept.Leads(path) }
		if keep := c.Resource.Keep; len(keep) > 0 && !slices.ContainsFunc(keep, covers) {
			c.fault("machine", "keep leaves %s out of the cache, which is part of its book", path)
			break
		}
	}
	g := newMachineCheck(m, c)
	g.states()
	g.starts()
	g.migrations()
	g.strangers()
	g.graph()
}

// checkMachineOptions reports options that have no meaning for machines, or contradict them.
func (h *Handler) checkMachineOptions(c check) {
	for _, has := range []struct {
		field string
		any   bool
		want  string
	}{
		{"retries", h.Retries != Unlimited, "want retries of a state"},
		{"errors", h.Errors != "", "an action that fails is tried again, as often as the retries of its state say"},
		{"deadline", h.Deadline != 0, "want stay of a state"},
		{"every", h.Timing != nil, "it runs when a time of its states has come"},
		{"field", len(h.Fields) > 0, "it looks at what its states read"},
		{"reads", h.Reads != nil, "its book is in the status, and its states may read any field"},
		{"finalizer", h.NoFinalizer, "its states of deletion hold the object"},
		{"deleted", h.Deleted, "want states of deletion"},
		{"old", h.NoOld, "nothing but its book is kept"},
	} {
		if has.any {
			c.unwanted(has.field, "%w: %s", errForMachines, has.want)
		}
	}
}

// checkName reports a name that cannot be a field of the status, and progress that another machine has, too.
func (m *Machine) checkName(c check, earlier []*Handler) {
	reserved := append(bookNames(),
		"conditions", "observedGeneration", // fields of the status
		"goto", "state", "children", "applied", "child", "owner", // annotations; the last three are on children, which may have machines, too
	)
	switch {
	case m.Name == "":
	case !machineName.MatchString(m.Name):
		c.fault("machine.name", "want a field of the status, such as rollout, found %q", m.Name)
	case slices.Contains(reserved, m.Name):
		c.fault("machine.name", "%s is taken: the status, or an annotation of the operator, has it for something else", m.Name)
	}
	for _, other := range earlier {
		if other.Machine == nil || other.ID != m.ID() {
			continue
		}
		c.note(Fault{First: &Place{Resource: c.Resource, Handler: other, Field: "machine.name"}}, "machine.name",
			"another machine has its book in %s, too (give each a name)", m.Book())
	}
	if len(m.States) == 0 {
		c.note(Fault{}, "machine.states", "want at least one state")
	}
}

// machineCheck is the check of one machine.
type machineCheck struct {
	check
	m *Machine
	// place has the place of the first declaration of each state. Group has the names of states, by deletion.
	place map[string]string
	group map[bool][]string
	// unknown are the ways to unknown states.
	unknown []stranger
}

// stranger is the name of an unknown state, and the field that leads there.
type stranger struct {
	field, name string
	deletion    bool
}

func newMachineCheck(m *Machine, c check) *machineCheck {
	g := &machineCheck{check: c, m: m, place: map[string]string{}, group: map[bool][]string{}}
	for i, s := range m.States {
		g.meet(at("machine.states", i), s.Name, false)
	}
	for i, s := range m.Deletion {
		g.meet(at("machine.deletion", i), s.Name, true)
	}
	return g
}

// meet adds a state by its name, and reports a name that is invalid or used twice.
func (g *machineCheck) meet(field, name string, deletion bool) {
	first, twice := g.place[name]
	switch {
	case !stateName.MatchString(name):
		g.fault(field+".name", "want a word such as Pending, found %q", name)
	case twice:
		g.note(Fault{First: &Place{Resource: g.Resource, Handler: g.Handler, Field: first + ".name"}}, field+".name", "there are two states %s", name)
	}
	if !twice {
		g.place[name] = field
		g.group[deletion] = append(g.group[deletion], name)
	}
}

// each calls do with each state, its field, and whether it is a state of deletion.
func (g *machineCheck) each(do func(s *State, field string, deletion bool)) {
	for i := range g.m.States {
		do(&g.m.States[i], at("machine.states", i), false)
	}
	for i := range g.m.Deletion {
		do(&g.m.Deletion[i], at("machine.deletion", i), true)
	}
}

// states checks each state on its own, and that its ways lead to known states.
func (g *machineCheck) states() {
	g.each(func(s *State, field string, deletion bool) {
		g.end(s, field)
		g.times(s, field)
		g.transitions(s, field)
		g.condition(s, field)
		for _, w := range s.Ways() {
			g.target(field+"."+w.Field, w.To, deletion)
		}
	})
}

// target checks that the name is a state to which the field may lead.
func (g *machineCheck) target(field, name string, deletion bool) {
	_, known := g.place[name]
	switch {
	case slices.Contains(g.group[deletion], name):
	case name == "":
		g.fault(field, "want the state to go to")
	case known && deletion:
		g.fault(field, "state %s is not one of deletion, and a deletion is not taken back", name)
	case known:
		g.fault(field, "state %s is one of deletion: objects go there when they are deleted", name)
	default:
		g.unknown = append(g.unknown, stranger{field, name, deletion})
	}
}

// strangers reports ways to unknown states. When several ways lead to one unknown name, and no known state has a
// similar name, the state's declaration is probably mistyped.
func (g *machineCheck) strangers() {
	reported := map[string]bool{}
	for _, s := range g.unknown {
		names := slices.DeleteFunc(slices.Clone(g.group[s.deletion]), func(name string) bool { return name == "" })
		meant, near := words.Nearest(s.name, names)
		ways := 0
		for _, other := range g.unknown {
			if other.name == s.name {
				ways++
			}
		}
		switch {
		case near && ways > 1 && !g.begins(meant, s.deletion):
			if !reported[s.name] {
				g.fault(g.place[meant]+".name", "no way leads to state %s, and %d lead to %q, which is not declared (did you mean %q here?)", meant, ways, s.name, s.name)
			}
			reported[s.name] = true
		case near || len(names) == len(g.group[s.deletion]): // otherwise the state may be the unnamed one, which is reported
			g.fault(s.field, "unknown state %q (%s)", s.name, words.Hint(s.name, names))
		}
	}
}

// begins reports whether objects can get into a state: it is an initial state, or a way leads to it.
func (g *machineCheck) begins(name string, deletion bool) bool {
	found := slices.Contains([]string{g.m.Initial, g.m.InitialDeletion}, name)
	if first := g.m.First(deletion); first != nil {
		found = found || first.Name == name
	}
	g.each(func(s *State, _ string, _ bool) {
		found = found || slices.ContainsFunc(s.Ways(), func(w Way) bool { return w.To == name })
	})
	return found
}

// end reports fields that a terminal state cannot have, and states that are Failed and not terminal.
func (g *machineCheck) end(s *State, field string) {
	if s.Failed && !s.Terminal {
		g.note(Fault{Lacks: "terminal"}, field+".failed", "is only for terminal states")
	}
	if !s.Terminal {
		return
	}
	if s.Stay != nil {
		g.unwanted(field+".stay", "is not for a terminal state, which nothing leaves by itself")
	}
	if s.Retries != nil {
		g.unwanted(field+".retries", "is not for a terminal state, which nothing leaves by itself")
	}
	for i, t := range s.Transitions {
		if !t.Manual {
			g.fault(at(field+".transitions", i), "state %s is terminal, so only a person leaves it (want manual)", s.Name)
		}
	}
}

// times checks the limits of a state: Stay and Retries.
func (g *machineCheck) times(s *State, field string) {
	switch {
	case s.Stay == nil || s.Stay.Limit != nil:
	case s.Stay.AtMost <= 0:
		g.fault(field+".stay.atMost", "want how long an object may be in the state")
	case s.Stay.AtMost < leastTime:
		g.fault(field+".stay.atMost", "must be at least %v, found %v", leastTime, s.Stay.AtMost)
	}
	if s.Retries == nil {
		return
	}
	if s.Retries.AtMost < 0 {
		g.fault(field+".retries.atMost", "must not be negative")
	}
	if s.Enter == nil && s.During == nil {
		g.unwanted(field+".retries", "the state has neither enter nor during, so nothing fails in it")
	}
}

// transitions reports transitions that contradict themselves, or are never taken.
func (g *machineCheck) transitions(s *State, field string) {
	always := -1
	for i, t := range s.Transitions {
		place := at(field+".transitions", i)
		switch {
		case t.Manual && t.When != nil:
			g.unwanted(place+".when", "is not for a manual transition, which a person takes")
		case t.Manual && t.To == s.Name:
			g.fault(place+".to", "a person cannot have an object go where it is (want another state, with a way back)")
		case t.Manual || s.Terminal:
		case always >= 0:
			first := &Place{Resource: g.Resource, Handler: g.Handler, Field: at(field+".transitions", always)}
			g.note(Fault{First: first, Lacks: first.Field + ".when"}, place, "is never taken: the transition to %s before it has no when", s.Transitions[always].To)
		case t.When == nil:
			always = i
		}
	}
}

// condition reports an invalid type of condition, or one that the engine sets.
func (g *machineCheck) condition(s *State, field string) {
	if s.Condition == "" {
		return
	}
	if faults := validation.IsQualifiedName(s.Condition); len(faults) > 0 {
		g.fault(field+".condition", "want the type of a condition, such as Scheduled, found %q: %s", s.Condition, faults[0])
	}
	if own := g.m.ReadyCondition(false); s.Condition == Ready || s.Condition == own {
		g.fault(field+".condition", "%s says whether the state is ready (want ready)", s.Condition)
	}
}

// starts checks the initial states.
func (g *machineCheck) starts() {
	if g.m.Initial != "" {
		g.target("machine.initial", g.m.Initial, false)
	}
	switch {
	case g.m.InitialDeletion == "":
	case len(g.m.Deletion) == 0:
		g.note(Fault{Unwanted: true, Lacks: "deletion"}, "machine.initialDeletion", "there are no states of deletion")
	default:
		g.target("machine.initialDeletion", g.m.InitialDeletion, true)
	}
}

// migrations checks that Migrate leads from unknown names to states of the machine.
func (g *machineCheck) migrations() {
	for _, from := range sortedKeys(g.m.Migrate) {
		field := "machine.migrate." + from
		if !stateName.MatchString(from) {
			field = fmt.Sprintf("machine.migrate[%q]", from)
		}
		if _, known := g.place[from]; known {
			g.fault(field, "there is a state %s, from which objects go by its transitions", from)
		}
		to := g.m.Migrate[from]
		if !slices.Contains(g.group[true], to) {
			g.target(field, to, false)
		}
	}
}

func sortedKeys(m map[string]string) []string {
	var out []string
	for key := range m {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

// at returns the name of an element of a list.
func at(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }

// round formats a way back for people.
func round(names []string) string { return strings.Join(append(names, names[0]), " → ") }
