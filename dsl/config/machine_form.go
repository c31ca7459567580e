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
	Name            string            `yaml:"name" doc:"The name of the machine: its state is in status.<name>, and its progress and its children are kept under the name. Absent: the state is in the status itself, and the name is machine. Of several machines one may have no name."`
	Initial         string            `yaml:"initial" doc:"The state of a new object. Default: the first one."`
	States          []state           `yaml:"states" required:"true" doc:"The states, in an order for people. All their names differ, those under deletion included."`
	Deletion        []state           `yaml:"deletion" doc:"The states of an object that is being deleted, whatever its state was before. A finalizer holds the object until it reaches a terminal one and the actions there are done. Absent: the machine does nothing for such an object."`
	InitialDeletion string            `yaml:"initialDeletion" doc:"The first state under deletion. Default: the one that stands first."`
	AllowCycles     bool              `yaml:"allowCycles" default:"false" doc:"Whether transitions may lead back to a state. If not, such a transition is a fault, even if only a person takes it."`
	Migrate         map[string]string `yaml:"migrate" min:"1" doc:"The new states of objects whose state is one of an earlier version of the machine: from names that no longer exist to names that do. An object in a state that is neither here nor among the states is held, and its condition Ready says so."`
	History         *int              `yaml:"history" min:"0" default:"10" doc:"How many transitions are kept in the object's status; 0 for none."`
	When            form.Predicate    `yaml:"when" doc:"While it is false, the machine does nothing for the object, which keeps its state. Variables: self, cause, now, children, related, indexes. Absent: the machine always acts."`
	Labels          matches           `yaml:"labels" min:"1" doc:"Labels that the object must have: a value, or {exists: true} or {exists: false}."`
	Annotations     matches           `yaml:"annotations" min:"1" doc:"Annotations that the object must have, in the form of labels."`
	Timeout         time.Duration     `yaml:"timeout" doc:"The time for one run of the machine. Absent: no limit."`
	Backoff         *backoff          `yaml:"backoff" doc:"The wait after an action failed; it doubles from initial to max."`
	OnFailure       onFailure         `yaml:"onFailure" default:"hold" doc:"For states under deletion: what becomes of an object in one that is terminal and failed. hold: the finalizer stays. release: it is removed."`
	Was             form.Texts        `yaml:"was" doc:"Names that the machine had in earlier versions, one or a list; machine for one without a name. Children under such a name become its own. The state in status.<name> is not moved."`
	Needs           []need            `yaml:"needs" doc:"Rights that operator rbac cannot see in the actions: those of Go functions that do not declare theirs, and those for children whose kind an expression gives."`
}

// state is one state of a machine.
type state struct {
	Name        string       `yaml:"name" required:"true" doc:"The name of the state, one CamelCase word, as in Running."`
	Doc         string       `yaml:"doc" doc:"A sentence for people that describes the state. It is the message of the conditions."`
	Enter       doings       `yaml:"enter" doc:"What to do once when an object enters the state: one action, or a list of steps in the form of handlers[].steps. It is tried again until it succeeds; before that, no transition but a time-out is taken. Children that apply makes stay when the object leaves the state."`
	During      doings       `yaml:"during" doc:"What to do whenever something changes while an object is in the state, in the form of enter. It puts back what others change."`
	Transitions []transition `yaml:"transitions" doc:"The ways out of the state, in order; the first one whose when is true is taken."`
	Stay        *stay        `yaml:"stay" doc:"How long an object may be in the state, and where it goes then. The time counts from the transition to the state, through failures and restarts. Absent: no limit."`
	Retries     *budget      `yaml:"retries" doc:"How many times enter and during may fail in the state, together, and where the object goes when they fail once more. Absent: they run until they succeed."`
	Terminal    bool         `yaml:"terminal" default:"false" doc:"Whether the machine ends here: only during goes on, and a person can still ask for a transition."`
	Failed      bool         `yaml:"failed" default:"false" doc:"For a terminal state: whether it is a failure."`
	Ready       *bool        `yaml:"ready" doc:"Whether the object's condition Ready is true in the state. Default: true in a terminal state that is not failed; else false."`
	Condition   string       `yaml:"condition" doc:"The type of a condition that is True in the states that name it, and False in all others."`
}

// transition is a transition to another state.
type transition struct {
	To     string         `yaml:"to" required:"true" doc:"The state that it leads to."`
	When   form.Predicate `yaml:"when" doc:"When the transition is taken. While a value of the status, a child or a related object is missing, it does not hold; a missing value of the spec is a failure. Variables: self, cause, now, children, related, indexes. Absent: as soon as enter has succeeded."`
	Manual bool           `yaml:"manual" default:"false" doc:"Whether the transition is taken only if a person asks for it, with the operator's annotation goto."`
	Why    string         `yaml:"why" doc:"Why the transition is taken, for people: the history and the Event have it. Default: the text of when."`
}

// stay limits how long an object may be in a state.
type stay struct {
	AtMost form.Expression `yaml:"atMost" required:"true" doc:"The longest time in the state: a duration such as 10m, or a CEL expression that gives a duration, text such as 10m, or null for no limit. Variables: self, cause, now, children, related, indexes."`
	Then   string          `yaml:"then" required:"true" doc:"The state that the object goes to after this time."`
}

// budget limits how often the actions of a state may fail.
type budget struct {
	AtMost *int   `yaml:"atMost" min:"0" required:"true" doc:"How many failures are allowed: a number, and no expression. 0: the first failure is one too many."`
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
