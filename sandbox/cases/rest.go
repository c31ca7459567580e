// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// The times of the last checks.
const (
	// round is how long an operator must be calm to be at rest, and rounds how often it may go on before. An object that
	// the breaker holds back is written again after a minute, and is not at rest.
	round  = 2 * time.Minute
	rounds = 5
	// still is how long it must write nothing then.
	still = 10 * time.Minute
)

// conclude checks what holds for every case: the operator comes to rest, writes nothing then, no rule changes its own result, and no
// handler fails.
func (r *runner) conclude() {
	r.at = r.c.at.Key("name")
	if r.armed != "" {
		r.fail(r.armed, "the operator has not crashed: it sent fewer writes", "")
	}
	r.unmet()
	r.unsettled()
	r.journal.mu.Lock()
	since := len(r.journal.lines)
	r.journal.mu.Unlock()
	for n := 1; ; n++ {
		last, why := r.writesWithin(round)
		if len(last) == 0 {
			break
		}
		if n == rounds {
			r.fail(r.at, fmt.Sprintf("the operator does not come to rest within %s", rounds*round), "writes of the last "+round.String()+":\n"+list(last)+why)
			return
		}
	}
	if more, why := r.writesWithin(still); len(more) > 0 {
		r.fail(r.at, "the operator writes at rest", "writes within "+still.String()+" in which nothing else happened:\n"+list(more)+why)
	}
	if !r.loops(since) {
		r.failingAtEnd()
	}
}

// unsettled reports rules of the operator that change an object again if they run on their own result. The API server may run a rule
// twice, so what it stores would depend on other rules.
func (r *runner) unsettled() {
	r.journal.mu.Lock()
	defer r.journal.mu.Unlock()
	for _, name := range r.journal.unsettled {
		if rule, is := r.program.covered.rules[name]; is {
			r.fail(r.at, rule+" changes its own result: it must give the same if it runs again", "")
		}
	}
}

// loops finds objects that the breaker has held back since a line of the log, and reports whether it found one. Where a handler runs each second, writes of
// others are excused with its own.
func (r *runner) loops(since int) bool {
	r.journal.mu.Lock()
	defer r.journal.mu.Unlock()
	for _, l := range slices.Backward(r.journal.lines[since:]) {
		if len(r.failures) == 0 && strings.HasPrefix(l.message, "object loops") {
			r.fail(r.at, "the operator does not come to rest", list([]line{l}))
			return true
		}
	}
	return false
}

// writesWithin lets time pass, and returns the writes meanwhile, without those that follow from
// handlers that time makes run, from retries of handlers that are expected to fail, and from workloads. The text has the handlers that ran.
func (r *runner) writesWithin(d time.Duration) (writes []kit.Write, handlers string) {
	r.collect()
	before, ran := len(r.writes), r.journal.ranSoFar()
	r.cluster.Advance(d)
	r.collect()
	writes = slices.DeleteFunc(slices.Clone(r.writes[before:]), func(w kit.Write) bool { return r.journal.excused(w.At, r.expected) })
	return writes, "\n" + titled("handlers that ran", r.journal.ranSoFar()[len(ran):])
}

// titled is a list under a title; empty if there is nothing to list.
func titled[T fmt.Stringer](title string, all []T) string {
	if len(all) == 0 {
		return ""
	}
	return title + ":\n" + list(all)
}

// list has a line for each, up to some. Of equal ones the line says how many there are.
func list[T fmt.Stringer](all []T) string {
	const most = 12
	times := map[string]int{}
	var order []string
	for _, one := range all {
		text := one.String()
		if times[text]++; times[text] == 1 {
			order = append(order, text)
		}
	}
	var out []string
	for i, text := range order {
		if i == most {
			out = append(out, fmt.Sprintf("  … and %d more", len(order)-most))
			break
		}
		if times[text] > 1 {
			text += fmt.Sprintf(" (%d times)", times[text])
		}
		out = append(out, "  "+text)
	}
	return strings.Join(out, "\n")
}

// trouble is a handler that fails for an object, a schedule that fails for a resource, or an index that leaves objects out. The handler is
// the name of any of them. It is empty where none fails, and the object fails all the same.
type trouble struct{ object, handler, message string }

// what names the part of the operator that fails, and for what.
func (t trouble) what() string {
	switch {
	case t.object == "":
		return "index " + t.handler + " fails at the end"
	case t.handler == "":
		return "a reconcile fails at the end, for " + t.object
	}
	return "a handler fails at the end, for " + t.object
}

// troubles returns the handlers that fail now.
func (r *runner) troubles() (out []trouble) {
	for _, check := range r.process.Engine().Ready() {
		about, object, _ := strings.Cut(check.Name, "/")
		switch {
		case check.State == ops.Pass:
		case about == "indexed":
			out = append(out, trouble{"", object, check.Message})
		case about == "schedule" || check.OfObject:
			if about == "schedule" {
				object = object[:strings.LastIndex(object, "/")]
			}
			_, each, named := strings.Cut(check.Message, "handler ") // for 10m: handler a …; handler b …
			if !named {
				out = append(out, trouble{object, "", check.Message})
				continue
			}
			for one := range strings.SplitSeq(each, "; handler ") {
				handler, _, _ := strings.Cut(one, " ")
				out = append(out, trouble{object, handler, "handler " + one})
			}
		}
	}
	return out
}

// failingAtEnd checks that the operator is ready, and that no handler fails that is not expected to.
func (r *runner) failingAtEnd() {
	for _, check := range r.process.Engine().Ready() {
		if check.State == ops.Fail && !check.OfObject {
			r.fail(r.at, "the operator is not ready: "+check.Name, check.Message)
		}
	}
	for _, t := range r.troubles() {
		if _, expected := r.expected[t.handler]; !expected {
			r.fail(r.at, t.what(), t.message+"\n"+r.errorLines())
		}
	}
}

// expectFailing checks that handlers fail now.
func (r *runner) expectFailing(e *expectation) {
	now := r.troubles()
	for _, handler := range sortedKeys(e.Failing) {
		words, found := e.Failing[handler], false
		var said []string
		for _, t := range now {
			if t.handler == handler {
				message := cmp.Or(r.journal.lastError(t), t.message)
				found = found || strings.Contains(message, words) || strings.Contains(t.message, words)
				said = append(said, "  "+message)
			}
		}
		at := e.at.Key("failing").Key(handler)
		switch {
		case found:
		case len(said) > 0:
			r.fail(at, "handler "+handler+" fails with other words", "- "+words+"\n+ "+strings.Join(said, "\n+ "), edit(at, strings.TrimSpace(said[0]))...)
		default:
			r.fail(at, "handler "+handler+" does not fail", r.errorLines())
		}
	}
}

// errorLines are the last lines of the log about errors.
func (r *runner) errorLines() string {
	r.journal.mu.Lock()
	defer r.journal.mu.Unlock()
	var out []line
	for _, l := range r.journal.lines {
		if l.level == "error" || l.level == "warning" {
			out = append(out, l)
		}
	}
	return titled("log", out[max(0, len(out)-3):])
}
