// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
)

// journal records what the operator of one case does. It is safe for use by several goroutines.
type journal struct {
	stubs map[string]stub
	// begun is when the case began.
	begun time.Time

	mu    sync.Mutex
	calls []call
	lines []line
	runs  []run
	// others are when workloads have changed.
	others []time.Time
	// unsettled are the names of policies that change an object again if they run on their own result.
	unsettled []string
	// failed counts the failures of stubs.
	failed map[string]int
}

// changesAgain notes a policy that changes its own result.
func (j *journal) changesAgain(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.Contains(j.unsettled, name) {
		j.unsettled = append(j.unsettled, name)
	}
}

// call is a call of a Go function.
type call struct {
	function string
	// kind, namespace and name are those of the object that it was called for; empty without one.
	kind, namespace, name string
	params                map[string]any
}

func callOf(function string, o *unstructured.Unstructured, params map[string]any) call {
	c := call{function: function, params: params}
	if o != nil {
		c.kind, c.namespace, c.name = o.GetKind(), o.GetNamespace(), o.GetName()
	}
	return c
}

// String is the call for people.
func (c call) String() string {
	out := c.function
	if c.name != "" {
		out += " for " + c.kind + " " + c.name
	}
	if len(c.params) > 0 {
		out += " with " + compact(c.params)
	}
	return out
}

// line is a line of the log.
type line struct {
	// after is the time since the case began.
	after   time.Duration
	level   level
	message string
	values  map[string]any
}

// run is an attempt of a handler.
type run struct {
	at      time.Time
	handler string
	cause   dsl.Cause
	// again: an earlier attempt has failed.
	again bool
}

// String is the attempt for people.
func (r run) String() string { return fmt.Sprintf("%s, for %s", r.handler, r.cause) }

// timed reports whether time alone made the handler run, and it may write each time.
func (r run) timed() bool { return r.cause == dsl.Timer || r.cause == dsl.Again }

type journalKey struct{}

// within returns a context with the journal, for functions that are called in it.
func (j *journal) within(ctx context.Context) context.Context {
	return context.WithValue(ctx, journalKey{}, j)
}

// journalOf returns the journal of a context, or nil.
func journalOf(ctx context.Context) *journal {
	j, _ := ctx.Value(journalKey{}).(*journal)
	return j
}

func (j *journal) called(c call) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.calls = append(j.calls, c)
}

// fails reports whether a stub fails now.
func (j *journal) fails(name string, s stub) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if s.Fails == "" || s.Times > 0 && j.failed[name] >= s.Times {
		return false
	}
	j.failed[name]++
	return true
}

// ran notes an attempt of a handler.
func (j *journal) ran(handler string, r *dsl.Request) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.runs = append(j.runs, run{time.Now(), handler, r.Cause, r.Attempt > 1})
}

// ranSoFar returns the attempts so far.
func (j *journal) ranSoFar() []run {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.runs)
}

// activity is how much the operator has done so far of what is no matter of time alone.
func (j *journal) activity() (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range j.runs {
		if !r.timed() && r.cause != dsl.Resync {
			n++
		}
	}
	return n
}

// excused reports whether a write at a moment has a known reason right before it: a timer ran, a handler that is
// expected to fail was tried again, or a workload changed.
func (j *journal) excused(at time.Time, failing map[string]string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	before := func(t time.Time) bool { return !t.After(at) && at.Sub(t) < pause }
	mayWrite := func(r run) bool {
		_, expected := failing[r.handler]
		return before(r.at) && (r.timed() || r.again && expected)
	}
	return slices.ContainsFunc(j.runs, mayWrite) || slices.ContainsFunc(j.others, before)
}

// other notes that somebody else has written.
func (j *journal) other() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.others = append(j.others, time.Now())
}

// logger returns a logger that writes to the journal, also what is at debug level.
func (j *journal) logger() logr.Logger { return logmark.Entries(1, j.logged) }

// logged records an entry of the log.
func (j *journal) logged(e logmark.Entry) {
	l := line{after: time.Since(j.begun), level: "info", message: e.Message, values: e.Values}
	switch {
	case e.Failed:
		l.level = "error"
	case e.Values[logmark.Warning] == true:
		l.level = "warning"
	case e.Level > 0:
		l.level = "debug"
	}
	delete(l.values, logmark.Warning)
	delete(l.values, logmark.Quoted)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, l)
}

// lastError returns the last error of a handler in the log, or nothing. The engine's report has only its beginning.
func (j *journal) lastError(t trouble) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range slices.Backward(j.lines) {
		parts := []string{l.text("resource"), l.text("namespace"), l.text("name")}
		object := strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "/")
		if l.text("handler") == t.handler && object == t.object && l.text("error") != "" && l.text("sameAs") == "" {
			return l.text("error")
		}
	}
	return ""
}

// text returns a value of a line as text; empty if it has none.
func (l line) text(key string) string {
	if l.values[key] == nil {
		return ""
	}
	return fmt.Sprint(l.values[key])
}

// object names the object that a line is about, as in foos/web.
func (l line) object() string {
	if l.text("name") == "" {
		return ""
	}
	return nameOf(l.text("resource"), l.text("namespace"), l.text("name"))
}

// String is the line for people.
func (l line) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%-7s %s after=%s", l.level, l.message, l.after.Round(time.Second/10))
	for _, key := range sortedKeys(l.values) {
		switch key {
		case "uid", "took", "operator", "attempt":
		default:
			fmt.Fprintf(&out, " %s=%v", key, l.values[key])
		}
	}
	return out.String()
}
