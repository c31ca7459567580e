// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// Text writes an answer for people, with colours if the reader is a terminal.
func Text(w io.Writer, a *Answer, colours bool) error {
	t := &text{now: a.At, colours: colours}
	t.head(a)
	if a.Unseen == "" {
		t.deletion(a.Deletion)
		for _, h := range a.Handlers {
			t.handler(h)
		}
		for _, m := range a.Machines {
			t.machine(m)
		}
		for _, c := range a.Children {
			t.child(c)
		}
		for _, o := range a.Targets {
			t.target(o)
		}
		for _, c := range a.Conditions {
			t.line(1, "", "%s", c)
		}
		t.events(a.Events)
		t.faults(a)
		t.history(a.History)
	}
	_, err := w.Write(t.out.Bytes())
	return err
}

// text is the text of an answer.
type text struct {
	out     bytes.Buffer
	now     time.Time
	colours bool
}

// The colours, as escape codes of terminals.
const (
	red, green, yellow = "31", "32", "33"
)

// line writes an indented line. It escapes texts of objects, because they must not control a terminal.
func (t *text) line(depth int, colour, format string, args ...any) {
	said := strings.TrimRight(plain.Escaped(fmt.Sprintf(format, args...), ""), " ")
	if t.colours && colour != "" {
		said = "\x1b[" + colour + "m" + said + "\x1b[0m"
	}
	t.out.WriteString(strings.Repeat("  ", depth) + said + "\n")
}

// head writes the object's name, and the facts about the object as a whole.
func (t *text) head(a *Answer) {
	name := strings.TrimPrefix(a.Namespace+"/"+a.Name, "/")
	about := fmt.Sprintf("%s %s", cmp.Or(a.Kind, a.Resource), name)
	if a.Operator != "" {
		about += " of operator " + a.Operator
	}
	t.line(0, "", "%s", about)
	if a.Verdict != "" {
		since := ""
		if a.Verdict == a.Health {
			since = t.since(a.Since)
		}
		t.line(1, colourOf(a.Verdict), "%s%s", a.Verdict, since)
	}
	if a.Without != "" {
		t.line(1, yellow, "%s", a.Without)
	}
	if a.Idle != nil && a.Idle.Reason != Paused.word {
		t.line(1, red, "%s%s", a.Idle.Says, t.until(a.Idle.Until))
	}
	if a.Problem != "" && !strings.HasSuffix(a.Verdict, a.Problem) {
		t.line(1, red, "%s", a.Problem)
	}
	if a.Due != nil {
		t.line(1, "", "the operator looks at it again by itself %s", t.at(*a.Due))
	}
}

// colourOf returns the colour of a verdict.
func colourOf(verdict string) string {
	switch state, _, _ := strings.Cut(verdict, ":"); state {
	case "ready":
		return green
	case string(Waiting), "not ready", "new", "busy":
		return yellow
	}
	return red
}

// handler writes the part about a handler.
func (t *text) handler(h Handler) {
	says := h.Says
	if h.Running != nil {
		says = fmt.Sprintf("handler %s has been running for %s", h.ID, t.ago(*h.Running))
	}
	var more []string
	if h.Attempts > 0 {
		more = append(more, count(h.Attempts, "attempt"))
	}
	if h.Next != nil {
		what := "next try "
		if h.Reason == NotYet.word {
			what = "next run "
		}
		more = append(more, what+t.due(*h.Next))
	}
	if len(more) > 0 {
		says += " (" + strings.Join(more, ", ") + ")"
	}
	if h.Operator != "" {
		says = "operator " + h.Operator + ": " + says
	}
	t.line(1, h.colour(), "%s", says)
	if h.Last != nil {
		t.line(2, "", "ran last %s", t.run(*h.Last))
	}
	for _, c := range h.Changed {
		t.line(2, "", "for a change of %s", c)
	}
	for _, c := range h.Clauses {
		t.clause(2, c)
	}
}

// colour returns the colour of a handler's line.
func (h Handler) colour() string {
	switch {
	case h.Attempts > 0, h.State == Failed, h.State == Failing:
		return red
	case h.Next != nil, h.Running != nil, h.Reason == Blocked.word, h.Reason == DaemonsFirst.word:
		return yellow
	}
	return ""
}

// run describes an attempt.
func (t *text) run(r Run) string {
	out := fmt.Sprintf("%s for %s: %s", t.at(r.At), r.Cause, r.Outcome)
	if r.Number > 1 {
		out += fmt.Sprintf(" (attempt %d)", r.Number)
	}
	if r.Took.Duration >= time.Millisecond {
		out += ", took " + r.Took.Round(time.Millisecond).String()
	}
	if r.Error != "" {
		out += ": " + oneLine(r.Error)
	}
	return out
}

// String describes the change.
func (c Change) String() string {
	switch {
	case c.From == "" && c.To == "":
		return c.Path
	case c.From == "":
		return c.Path + ": now " + c.To
	case c.To == "":
		return c.Path + ": was " + c.From
	}
	return c.Path + ": from " + c.From + " to " + c.To
}

// clause writes the answer of a condition, with the values that decided.
func (t *text) clause(depth int, c dsl.Clause) {
	said, colour := "yes", ""
	switch {
	case c.Error != "":
		said, colour = "it failed: "+oneLine(c.Error), red
	case !c.Holds:
		said, colour = "no", yellow
	}
	about := strings.TrimSuffix(c.What+": "+c.Text, ": ")
	if c.Place != "" {
		about += " (" + c.Place + ")"
	}
	t.line(depth, colour, "%s: %s", about, said)
	for _, v := range c.Values {
		t.line(depth+1, "", "%s is %s", v.Text, v.Value)
	}
}

// child writes the state of a child.
func (t *text) child(c Child) {
	by := ""
	if c.Handler != "" {
		by = " of handler " + c.Handler
	}
	colour := ""
	if c.State != "ready" && c.State != "gone" {
		colour = yellow
	}
	t.line(1, colour, "child %s%s (%s): %s", c.People(), by, c.tie(), strings.TrimSuffix(c.State+": "+oneLine(c.Says), ": "))
}

// target writes the fields that a handler owns on another object.
func (t *text) target(o Target) {
	entry := ""
	if o.Entry != "" {
		entry = ", entry " + o.Entry
	}
	t.line(1, "", "patches %s by handler %s%s", o.People(), o.Handler, entry)
}

// tie says how the child is tied to the object.
func (c Child) tie() string {
	if c.By == "record" {
		return "by its label, and listed on the object"
	}
	return "by owner reference"
}

// machine writes where the object is in a machine.
func (t *text) machine(m Machine) {
	if m.State == "" {
		t.line(1, yellow, "machine %s has not begun", m.ID)
		return
	}
	t.line(1, "", "machine %s is in state %s%s", m.ID, m.State, t.since(m.Since))
	if m.Ends != nil {
		t.line(2, "", "to %s: %s, when its time is over", m.Then, t.at(*m.Ends))
	}
	for _, way := range m.Ways {
		if way.Says != "" {
			t.line(2, "", "to %s: %s", way.To, way.Says)
			continue
		}
		way.When.What = strings.TrimSpace("to " + way.To + ": " + way.When.What)
		t.clause(2, way.When)
	}
	for _, s := range m.History {
		t.line(2, "", "%s: %s to %s: %s", s.At, s.From, s.To, oneLine(s.Why))
	}
}

// deletion writes what holds the deletion.
func (t *text) deletion(d *Deletion) {
	if d == nil {
		return
	}
	t.line(1, yellow, "its deletion began %s ago; finalizers: %s", t.ago(d.Since), cmp.Or(strings.Join(d.Finalizers, ", "), "none"))
	for _, held := range d.Held {
		t.line(2, red, "held by %s", held)
	}
}

// faults writes the problems around the object.
func (t *text) faults(a *Answer) {
	for _, right := range a.Rights {
		t.line(1, red, "right is missing: %s", right)
	}
	for _, f := range a.Sources {
		t.line(1, red, "%s", f)
	}
	for _, what := range a.Unread {
		t.line(1, yellow, "not read: %s", what)
	}
}

// events writes the Events about the object.
func (t *text) events(all []Event) {
	for _, e := range all {
		colour, times := "", ""
		if e.Type == "Warning" {
			colour = yellow
		}
		if e.Count > 1 {
			times = fmt.Sprintf(" (%d times)", e.Count)
		}
		t.line(1, colour, "Event %s, %s%s: %s", e.Reason, t.at(e.At), times, oneLine(e.Message))
	}
}

// history writes the recorded reconciles.
func (t *text) history(reconciles []Reconcile) {
	for _, p := range reconciles {
		t.line(0, "", "%s  %s", p.At.UTC().Format(time.RFC3339), p.summary())
		for _, c := range p.Changed {
			t.line(1, "", "%s", c)
		}
		for _, a := range p.Attempts {
			run := a.Run
			run.At = p.At
			t.line(1, "", "handler %s ran %s", a.Handler, strings.TrimPrefix(t.run(run), t.at(p.At)+" "))
		}
		for _, s := range p.Skips {
			t.line(1, "", "%s", s.Says)
		}
		if p.More > 0 && p.Latest != nil {
			t.line(1, "", "and %s like it, the last one at %s", count(p.More, "more reconcile"), p.Latest.UTC().Format(time.RFC3339))
		}
	}
}

// summary describes a reconcile in a line.
func (p Reconcile) summary() string {
	if p.Idle != "" {
		return p.Idle
	}
	var out []string
	if len(p.Woken) > 0 {
		out = append(out, strings.Join(p.Woken, ", "))
	} else {
		out = append(out, "a wait or a timer had ended")
	}
	if p.Wrote {
		out = append(out, "the object was written")
	}
	if p.Error != "" {
		out = append(out, "could not be finished: "+oneLine(p.Error))
	}
	return strings.Join(out, "; ")
}

// at says when something was, or will be.
func (t *text) at(at time.Time) string {
	if d := at.Sub(t.now); d > 0 {
		return "in " + short(d)
	}
	return t.ago(at) + " ago"
}

// due says when something will be, or that it is late.
func (t *text) due(at time.Time) string {
	if at.Before(t.now) {
		return "was due " + t.at(at)
	}
	return t.at(at)
}

func (t *text) ago(at time.Time) string { return short(t.now.Sub(at)) }

func (t *text) since(at *time.Time) string {
	if at == nil {
		return ""
	}
	return ", for " + t.ago(*at)
}

func (t *text) until(at *time.Time) string {
	if at == nil {
		return ""
	}
	return "; the next reconcile is " + t.at(*at)
}

// short formats a duration for people.
func short(d time.Duration) string {
	switch {
	case d < time.Second:
		d = d.Round(time.Millisecond)
	case d < time.Hour:
		d = d.Round(time.Second)
	default:
		d = d.Round(time.Minute)
	}
	return plain.Period(d)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if strings.HasSuffix(what, "s") {
		what += "e"
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
