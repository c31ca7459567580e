// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"time"

	"github.com/handwerk-dev/handwerk/dsl/guard"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// Clause is one condition of a handler, a step, a child or a transition, with its answer for an object and with the
// values that decided it. It is made for people who ask, and never when handlers run.
type Clause struct {
	// What names the condition, as in "label", "when", "step 2: when" and "child db: includeWhen".
	What string `json:"what"`
	// Text is the condition as its author wrote it, in one line and shortened. For a predicate in Go it is the name
	// of the function.
	Text string `json:"text"`
	// Place is the file and the line of the text. Empty if it is not known.
	Place string `json:"place,omitempty"`
	// Holds is the answer. It is false if the condition failed.
	Holds bool `json:"holds"`
	// Error says why there is no answer.
	Error string `json:"error,omitempty"`
	// Values are the parts of the text that decided the answer, with their values. A predicate in Go has none.
	Values []ClauseValue `json:"values,omitempty"`
}

// ClauseValue is a part of a condition with its value.
type ClauseValue struct {
	// Text is the part, as in self.spec.size.
	Text string `json:"text"`
	// Value is the value in one short line. Texts are quoted, so that the words [NotSet], [NotThere] and [Secret] are
	// never values.
	Value string `json:"value"`
}

// The values of parts that have no value, or none that may be shown.
const (
	// NotSet: the field does not exist.
	NotSet = "not set"
	// NotThere: the child or the related object does not exist.
	NotThere = "not there"
	// Secret: the value may come from a Secret.
	Secret = "(secret)"
)

// Explain evaluates the conditions of a handler for an object, and says of each how it came to its answer: those on
// labels and annotations, Timing.At, which holds once the time has come, When, and those within the code. It asks all
// of them, also after one that does not hold.
func (h *Handler) Explain(s *Subject) (out []Clause) {
	for _, m := range h.Labels {
		out = append(out, m.explain("label", s.Object.GetLabels()))
	}
	for _, m := range h.Annotations {
		c := m.explain("annotation", s.Object.GetAnnotations())
		if s.Secrets.In([]string{"self"}) && c.Values[0].Value != NotSet {
			c.Values[0].Value = Secret // annotations of a Secret may repeat it
		}
		out = append(out, c)
	}
	if h.AtTime() {
		out = append(out, h.explainAt(s))
	}
	if h.Known.ExplainWhen != nil {
		out = append(out, h.Known.ExplainWhen(s))
	} else if h.When != nil {
		out = append(out, explainGo(h.whens, h.When, s)...)
	}
	if h.Known.ExplainCode != nil {
		out = append(out, h.Known.ExplainCode(s)...)
	}
	return out
}

// explainAt computes the time of a handler with Timing.At, and says whether it has come.
func (h *Handler) explainAt(s *Subject) Clause {
	c := Clause{What: "at", Text: h.Known.At.Text, Place: h.Known.At.Place}
	if c.Text == "" {
		c.Text, c.Place = declared(h.Timing.At)
	}
	var at time.Time
	var err error
	if broke := guard.Call("at", func() { at, err = h.Timing.At(s) }); broke != nil {
		err = broke
	}
	value := ClauseValue{Text: "the time", Value: NotSet}
	switch {
	case err != nil:
		c.Error = err.Error()
		return c
	case s.Secrets.In([]string{"self"}):
		value.Value = Secret
	case !at.IsZero():
		value.Value = at.UTC().Format(time.RFC3339)
	}
	c.Holds, c.Values = !at.IsZero() && !at.After(s.Now), []ClauseValue{value}
	return c
}

// Explain evaluates the condition of a transition and says how it came to its answer. A transition without one
// holds; one that only a person takes has an empty text, and does not hold.
func (t *Transition) Explain(s *Subject) Clause {
	switch {
	case t.ExplainWhen != nil:
		return t.ExplainWhen(s)
	case t.When != nil:
		return explainGo(nil, t.When, s)[0]
	}
	return Clause{What: "when", Holds: !t.Manual}
}

// explain evaluates a condition on labels or annotations.
func (m Match) explain(what string, set map[string]string) Clause {
	c := Clause{What: what, Text: m.String(), Holds: m.Matches(set), Values: []ClauseValue{{Text: m.Key, Value: NotSet}}}
	if value, found := set[m.Key]; found {
		c.Values[0].Value = strconv.Quote(plain.Short(value, longestShown))
	}
	return c
}

// String writes the condition as in a selector of kubectl.
func (m Match) String() string {
	switch m.Op {
	case Exists:
		return m.Key
	case Absent:
		return "!" + m.Key
	default:
		return m.Key + "=" + m.Value
	}
}

// explainGo evaluates predicates in Go one by one: those that were declared, or all as one.
func explainGo(each []Predicate, all Predicate, s *Subject) (out []Clause) {
	if len(each) == 0 {
		each = []Predicate{all}
	}
	for _, p := range each {
		c := Clause{What: "when"}
		c.Text, c.Place = declared(p)
		var err error
		if broke := guard.Call("when", func() { c.Holds, err = p(s) }); broke != nil {
			err = broke
		}
		if err != nil {
			c.Holds, c.Error = false, err.Error()
		}
		out = append(out, c)
	}
	return out
}

// declared returns the name of a function and its place, shortened to the package's folder.
func declared(p any) (name, place string) {
	entry := reflect.ValueOf(p).Pointer()
	f := runtime.FuncForPC(entry)
	if f == nil {
		return "a function in Go", ""
	}
	file, line := f.FileLine(entry)
	return filepath.Base(f.Name()), fmt.Sprintf("%s/%s:%d", filepath.Base(filepath.Dir(file)), filepath.Base(file), line)
}
