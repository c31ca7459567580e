// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/handwerk-dev/handwerk/engine/enginetest"
	"github.com/handwerk-dev/handwerk/engine/ops"
)

// The times of the last checks.
const (
	// round is how long an operator must be calm to be at rest, and rounds how often it may go on before.
	round  = 30 * time.Second
	rounds = 20
	// still is how long it must write nothing then.
	still = 10 * time.Minute
)

// conclude checks what holds for every case: the operator comes to rest, writes nothing then, and no handler fails.
func (r *runner) conclude() {
	r.at = r.c.at.Key("name")
	if r.armed != "" {
		r.fail(r.armed, "the operator has not crashed: it sent fewer writes", "")
	}
	var last []enginetest.Write
	for n := 0; ; n++ {
		if last = r.writesWithin(round); len(last) == 0 {
			break
		}
		if n == rounds {
			r.fail(r.at, fmt.Sprintf("the operator does not come to rest within %s", rounds*round), "writes of the last "+round.String()+":\n"+list(last))
			return
		}
	}
	if more := r.writesWithin(still); len(more) > 0 {
		r.fail(r.at, "the operator writes at rest", "writes within "+still.String()+" in which nothing else happened:\n"+list(more))
	}
	r.failingAtEnd()
}

// writesWithin lets time pass, and returns the writes meanwhile, without those of handlers that time makes run.
func (r *runner) writesWithin(d time.Duration) []enginetest.Write {
	r.collect()
	before := len(r.writes)
	r.cluster.Advance(d)
	r.collect()
	return slices.DeleteFunc(slices.Clone(r.writes[before:]), func(w enginetest.Write) bool { return r.journal.timedAt(w.At) })
}

// list has a line for each write, up to some.
func list[T fmt.Stringer](all []T) string {
	const most = 12
	var out []string
	for i, one := range all {
		if i == most {
			out = append(out, fmt.Sprintf("… and %d more", len(all)-most))
			break
		}
		out = append(out, "  "+one.String())
	}
	if len(out) == 0 {
		return "  (none)"
	}
	return strings.Join(out, "\n")
}

// trouble is a handler that fails for an object.
type trouble struct{ object, handler, message string }

// troubles returns the handlers that fail now.
func (r *runner) troubles() (out []trouble) {
	for _, check := range r.process.Engine().Ready() {
		if check.State != ops.Pass && check.OfObject {
			_, object, _ := strings.Cut(check.Name, "/")
			out = append(out, trouble{object, handlerIn(check.Message), check.Message})
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
			r.fail(r.at, "a handler fails at the end: "+t.handler+" for "+t.object, t.message+"\n"+r.errorLines())
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
				found = found || strings.Contains(t.message, words)
				said = append(said, "  "+t.message)
			}
		}
		at := e.at.Key("failing").Key(handler)
		switch {
		case found:
		case len(said) > 0:
			r.fail(at, "handler "+handler+" fails with other words", "- "+words+"\n+ "+strings.Join(said, "\n+ "))
		default:
			r.fail(at, "handler "+handler+" does not fail", r.errorLines())
		}
	}
}

// handlerIn returns the handler that a check is about.
func handlerIn(message string) string {
	_, rest, _ := strings.Cut(message, "handler ")
	handler, _, _ := strings.Cut(rest, " ")
	return handler
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
	return "log:\n" + list(out[max(0, len(out)-3):])
}
