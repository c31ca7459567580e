// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"reflect"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/form"
)

var (
	_ form.Form = (*machines)(nil)
	_ form.Form = (*doings)(nil)
)

// machine is a finite state machine over the objects of a resource; see [dsl.Machine].
type machine struct {
	Name            string            `yaml:"name" doc:"Where the state is kept: status.<name>, and the id under which the machine's progress and children are kept. Absent: status itself, and machine. Of several machines one may have no name."`
	Initial         string            `yaml:"initial" doc:"The state of a new object. By default the first one."`
	States          []state           `yaml:"states" required:"true" doc:"The states, in an order for people. The names of all of them differ, those under deletion included."`
	Deletion        []state           `yaml:"deletion" doc:"States of an object that is being deleted, whatever its state was. The object is held until one that is terminal is reached and its actions are done. Absent: the machine does nothing for such an object."`
	InitialDeletion string            `yaml:"initialDeletion" doc:"The first of the states under deletion. By default the one that stands first."`
	AllowCycles     bool              `yaml:"allowCycles" doc:"Whether a state may be come back to. Otherwise a way back is a fault, also one that only a person takes."`
	Migrate         map[string]string `yaml:"migrate" min:"1" doc:"Where objects go that are in a state of an earlier version of the machine: from names that there are not any more to names that there are. An object in a state that is in neither list is held, and its condition Ready says so."`
	History         *int              `yaml:"history" min:"0" default:"10" doc:"How many transitions are kept in the object's status. 0 means none."`
	When            form.Predicate    `yaml:"when" doc:"A CEL expression that must be true, or the machine does not see the object, which keeps its state. Variables: self, cause, now, children, related, indexes."`
	Labels          matches           `yaml:"labels" min:"1" doc:"Labels that the object must have: a value, or {exists: true} or {exists: false}."`
	Annotations     matches           `yaml:"annotations" min:"1" doc:"Annotations that the object must have, in the form of labels."`
	Timeout         time.Duration     `yaml:"timeout" doc:"The time that one run may take. Absent: no limit."`
	Backoff         *backoff          `yaml:"backoff" doc:"The wait after an action has failed; it doubles from initial to max."`
	OnFailure       onFailure         `yaml:"onFailure" default:"hold" doc:"With states under deletion: whether an object is held or released in one of them that is terminal and failed."`
	Was             form.Texts        `yaml:"was" doc:"A name that the machine had in an earlier version, or several; machine for one without a name. Children that say so are its own. What status.<name> says is not moved."`
	Needs           []need            `yaml:"needs" doc:"The rights that the actions need and their definition does not show: those of Go functions that do not declare theirs, and those for children whose kind is computed. For operator rbac."`
}

// state is one state of a machine.
type state struct {
	Name        string       `yaml:"name" required:"true" doc:"One CamelCase word, as in Running."`
	Doc         string       `yaml:"doc" doc:"What the state is, in a sentence for people. It is the message of the conditions."`
	Enter       doings       `yaml:"enter" doc:"What is done once after the state was entered: one action, or a list of steps in the form of handlers[].steps. It is tried again until it has succeeded, and no transition but that of a time-out is taken before. What apply makes stays when the state is left."`
	During      doings       `yaml:"during" doc:"What is done whenever something changes while an object is in the state, in the form of enter, so that what others change is put right."`
	Transitions []transition `yaml:"transitions" doc:"The ways out, in order: the first one that holds is taken."`
	Stay        *stay        `yaml:"stay" doc:"How long an object may be in the state, and where it goes then. It counts from the transition to the state, through failures and restarts."`
	Retries     *budget      `yaml:"retries" doc:"How often enter and during may fail in the state, together, and where the object goes when they fail once more. Absent: until they succeed."`
	Terminal    bool         `yaml:"terminal" doc:"Whether it is an end: nothing more happens but during, and what a person asks for."`
	Failed      bool         `yaml:"failed" doc:"Whether the end is a bad one."`
	Ready       *bool        `yaml:"ready" doc:"Whether the object's condition Ready is true in the state. By default it is in a terminal state that is not failed."`
	Condition   string       `yaml:"condition" doc:"The type of a condition that is True in the states that say so, and False in all others."`
}

// transition is a transition to another state.
type transition struct {
	To     string         `yaml:"to" required:"true" doc:"The state that it leads to."`
	When   form.Predicate `yaml:"when" doc:"A CEL expression that must be true for it to be taken. What comes upon something that is not there, does not hold yet. Variables: self, cause, now, children, related, indexes. Absent: it is taken as soon as enter has succeeded."`
	Manual bool           `yaml:"manual" doc:"Whether it is taken only when a person asks for it, with the operator's annotation goto."`
	Why    string         `yaml:"why" doc:"Why it is taken, for people: it is part of the history and of the Event. By default the expression."`
}

// stay limits how long an object may be in a state.
type stay struct {
	AtMost time.Duration `yaml:"atMost" required:"true" doc:"The longest time."`
	Then   string        `yaml:"then" required:"true" doc:"The state that the object goes to after it."`
}

// budget limits how often the actions of a state may fail.
type budget struct {
	AtMost *int   `yaml:"atMost" min:"0" required:"true" doc:"How often they may. 0 means that the first failure is one too many."`
	Then   string `yaml:"then" required:"true" doc:"The state that the object goes to when they fail once more."`
}

// machines is one machine or a list of them.
type machines struct {
	list []machine
	// single: the document has one machine, and not a list.
	single bool
}

// ReadForm reads the machine or the list.
func (m *machines) ReadForm(d *form.Decoder, at path, n *yaml.Node) bool {
	return oneOrList(d, at, n, &m.list, &m.single)
}

// DescribeForm describes the machine or the list.
func (m *machines) DescribeForm(d *form.Describer) *form.Schema {
	return describeOneOrList(d.Struct(reflect.TypeFor[machine]()))
}

// at returns the place of machine i.
func (m *machines) at(around path, i int) path {
	if m.single {
		return around.Key("machine")
	}
	return around.Key("machine").Index(i)
}

// oneOrList reads one map or a list of them.
func oneOrList[T any](d *form.Decoder, at path, n *yaml.Node, list *[]T, single *bool) bool {
	if n.Kind == yaml.SequenceNode {
		return d.Value(at, n, list)
	}
	if n.Kind != yaml.MappingNode {
		d.FaultAt(n, at, "want a map or a list of them, found %s", form.Found(n))
		return false
	}
	*list, *single = make([]T, 1), true
	return d.Value(at, n, &(*list)[0])
}

// describeOneOrList describes what oneOrList reads.
func describeOneOrList(one *form.Schema) *form.Schema {
	return &form.Schema{OneOf: []*form.Schema{one, {Type: "array", Items: one, MinItems: 1}}}
}

// doings are the actions of enter or during: one action, or several steps.
type doings struct {
	list   []step
	single bool
}

// ReadForm reads the action or the steps.
func (s *doings) ReadForm(d *form.Decoder, at path, n *yaml.Node) bool {
	return oneOrList(d, at, n, &s.list, &s.single)
}

// DescribeForm describes the action or the steps.
func (s *doings) DescribeForm(d *form.Describer) *form.Schema {
	return describeOneOrList(d.Define("step", func() *form.Schema { return withAction(d, reflect.TypeFor[step](), anyAction) }))
}

// does describes the actions of a state for people.
func (s *state) does() string {
	var out []string
	for _, some := range []struct {
		word string
		do   []step
	}{{"enter", s.Enter.list}, {"during", s.During.list}} {
		var names []string
		for i := range some.do {
			names = append(names, some.do[i].does())
		}
		if len(names) > 0 {
			out = append(out, some.word+": "+strings.Join(names, ", "))
		}
	}
	return strings.Join(out, "; ")
}

// at returns the place of step i.
func (s *doings) at(around path) func(i int) path {
	if s.single {
		return func(int) path { return around }
	}
	return around.Index
}

// named returns the name of step i: the first one of enter is enter, the second one enter2.
func (s *doings) named(word string) func(i int) string {
	return func(i int) string {
		switch {
		case s.list[i].Name != "":
			return s.list[i].Name
		case i == 0:
			return word
		}
		return word + strconv.Itoa(i+1)
	}
}

// id returns the id for the machine's progress and children.
func (m *machine) id() string {
	if m.Name != "" {
		return m.Name
	}
	return dsl.DefaultMachineID
}
