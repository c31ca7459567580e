// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl/convert"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
	"github.com/handwerk-dev/handwerk/sandbox/workloads"
)

// Failure is what is not as a case wants it.
type Failure struct {
	// File, Line and Column are the place in the case.
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// Message says in one line what is wrong.
	Message string `json:"message"`
	// Detail has more lines: a difference, or what there is instead. It may be empty.
	Detail string `json:"detail,omitempty"`
	// Edits make the case expect what was found. Without any, nothing in the case can be changed so.
	Edits []Edit `json:"edits,omitempty"`
}

// String is the failure for people. Lines after the first are indented.
func (f Failure) String() string {
	out := fmt.Sprintf("%s:%d: %s", f.File, f.Line, plain.Escaped(f.Message, ""))
	if f.Detail != "" {
		out += "\n    " + strings.ReplaceAll(strings.TrimRight(f.Detail, "\n"), "\n", "\n    ")
	}
	return out
}

// Test runs a case in a bubble of its own, and returns what is not as it wants it.
func (s *Suite) Test(t *testing.T, c *Case) (failures []Failure) {
	r := &runner{suite: s, c: c, file: c.file, journal: &journal{stubs: c.Functions, failed: map[string]int{}}}
	p, err := s.load(c.file.config())
	if err != nil {
		return []Failure{r.failure("config", "the operator cannot be read", err.Error())}
	}
	synctest.Test(t, func(t *testing.T) {
		defer func() {
			ended := recover()
			if err, is := ended.(error); ended != nil && (!is || !errors.Is(err, errStop)) {
				panic(ended)
			}
		}()
		r.t = &recorder{TB: t, r: r}
		r.at = c.at.Key("name")
		time.Sleep(time.Until(time.Time(cmp.Or(c.Now, c.file.Now)))) // the clock of a bubble begins in 2000
		r.journal.begun = time.Now()
		r.whole(p)
	})
	slices.SortStableFunc(r.failures, func(a, b Failure) int { return cmp.Compare(a.Line, b.Line) })
	return r.failures
}

// runner runs a case.
type runner struct {
	suite   *Suite
	c       *Case
	file    *File
	journal *journal
	t       *recorder

	server  *server.Server
	cluster *kit.Cluster
	client  dynamic.Interface
	// warnings are those of the last step.
	warnings warnings
	plan     *workloads.Plan
	process  *kit.Process
	// started are the processes so far.
	started []*kit.Process
	program *program
	// covered is that of the program, for the goroutines of the server.
	covered atomic.Pointer[coverage]

	// at is the place of what is done now.
	at       form.Path
	failures []Failure
	// writes are those of the operator so far, and seen how much of each record earlier expectations have counted.
	writes []kit.Write
	seen   mark
	// armed is where a crash is written that has not come yet.
	armed form.Path
	// faults are the steps that let requests fail.
	faults []fault
	// expected are the handlers that fail at the end, with words of their errors.
	expected map[string]string
}

// mark is how much has been recorded at a time.
type mark struct {
	writes, lines, calls int
	events               map[string]int64
}

// recorder takes what the kit has to say as failures of the case.
type recorder struct {
	testing.TB
	r *runner
}

// Errorf records a failure.
func (t *recorder) Errorf(format string, args ...any) {
	t.r.fail(t.r.at, fmt.Sprintf(format, args...), "")
}

// Error records a failure.
func (t *recorder) Error(args ...any) { t.r.fail(t.r.at, fmt.Sprint(args...), "") }

// Fatalf records a failure, and ends the case.
func (t *recorder) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	t.FailNow()
}

// Fatal records a failure, and ends the case.
func (t *recorder) Fatal(args ...any) {
	t.Error(args...)
	t.FailNow()
}

// FailNow ends the case, and not the test: that would end without a word the one around the bubble, too, which has to report
// what was recorded.
func (t *recorder) FailNow() { panic(errStop) }

// Failed reports whether the case has failed. The log of the kit is not printed: the case has its own.
func (t *recorder) Failed() bool { return false }

func (r *runner) failure(at form.Path, message, detail string) Failure {
	n := r.file.node(at)
	return Failure{File: r.file.Name, Line: n.Line, Column: n.Column, Message: message, Detail: detail}
}

// fail notes a failure, and the changes after which the case expects what was found.
func (r *runner) fail(at form.Path, message, detail string, changes ...Edit) {
	f := r.failure(at, message, detail)
	f.Edits = changes
	r.failures = append(r.failures, f)
}

// errStop ends a case: what comes next would only follow from what has failed.
var errStop = errors.New("the case ends here")

// whole runs the case from its beginning to its end.
func (r *runner) whole(p *program) {
	settings := complete.Settings()
	settings.Authorize = false
	settings.Rarer = true
	settings.Decided = func(policy string) {
		if c := r.covered.Load(); c != nil {
			c.decided(policy)
		}
	}
	settings.Unsettled = r.journal.changesAgain
	r.server = server.New(settings)
	r.cluster = kit.On(r.t, r.server)
	r.cluster.Within(r.journal.within(context.Background()))
	var err error
	config := r.cluster.Config()
	config.WarningHandler = &r.warnings
	if r.client, err = dynamic.NewForConfig(config); err != nil {
		r.t.Fatalf("connecting: %v", err)
	}
	end := r.alive()
	defer end()
	defer r.unknown()
	if err := r.steps(p); err != nil {
		return
	}
	r.conclude()
}

// alive lets workloads come alive until the returned function is called.
func (r *runner) alive() (end func()) {
	r.plan = workloads.NewPlan()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		config := r.cluster.Config()
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return clusterLink{next, r.journal} })
		_ = workloads.Run(ctx, config, workloads.Settings{Plan: r.plan, AllKinds: true}) // it fails only for an invalid config
	}()
	return func() {
		r.kill()
		cancel()
		<-done
	}
}

// kill ends the operator, so that nothing is written when the case is over.
func (r *runner) kill() {
	for _, p := range r.started {
		p.Kill()
	}
}

// start starts an operator.
func (r *runner) start(p *program) {
	r.program = p
	r.covered.Store(&p.covered)
	if lock := p.op.Settings.LeaderElection.Namespace; lock != "" { // the operator's Pod would be there
		if err := r.makeNamespace(lock); err != nil {
			r.t.Fatal(err)
		}
	}
	r.process = r.cluster.Start(p.op, func(s *engine.Settings) {
		s.Log, s.Namespace = r.journal.logger(), home
		s.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return operatorLink{next} })
	})
	r.started = append(r.started, r.process)
}

// steps prepares the cluster, and does the steps of the case.
func (r *runner) steps(p *program) error {
	if err := r.installAll(p, "config"); err != nil {
		return err
	}
	for _, given := range []objects{r.file.Given, r.c.Given} {
		if err := r.each(given, r.create); err != nil {
			r.fail(r.at, err.Error(), "")
			return errStop
		}
	}
	if err := r.arrange(r.c.Workloads); err != nil {
		r.fail(r.c.at.Key("workloads"), err.Error(), "")
		return errStop
	}
	r.cluster.Settle()
	r.start(p)
	r.calm()
	for i := range r.c.Steps {
		s := &r.c.Steps[i]
		r.at = s.at
		if err := r.step(s); err != nil {
			return err
		}
	}
	if e := r.c.Expect; e != nil {
		r.at = e.at
		r.expect(e)
	}
	return nil
}

// installAll installs the CRDs of an operator, which converts the objects of those with several versions.
func (r *runner) installAll(p *program, at form.Path) error {
	for _, of := range p.op.Resources() {
		if c := convert.Of(of); c != nil {
			r.cluster.Convert(of.CRDName(), func(o *unstructured.Unstructured, to string) (*unstructured.Unstructured, error) {
				tree, err := c.Convert(o.Object, to)
				return &unstructured.Unstructured{Object: tree}, err
			})
		}
	}
	for _, crd := range p.crds {
		if err := r.install(crd); err != nil {
			r.fail(at, "the API server refuses the CRD "+crd.GetName(), err.Error())
			return errStop
		}
	}
	return nil
}

// pause is the time in which an operator that has something to do writes or runs a handler.
const pause = 2 * time.Second

// calm lets the operator go on until it has nothing to do for a moment. A crash that has come meanwhile is followed by
// a new process.
func (r *runner) calm() {
	for range 60 {
		before := r.activity()
		r.cluster.Advance(pause)
		r.revive()
		if r.activity() == before {
			return
		}
	}
}

// activity is how much has happened so far.
func (r *runner) activity() int {
	r.collect()
	return len(r.writes) + r.journal.activity()
}

// collect takes the writes of the operator.
func (r *runner) collect() {
	more := r.cluster.Writes()
	r.transitions(more)
	r.writes = append(r.writes, more...)
}

// revive starts the operator again after its crash.
func (r *runner) revive() {
	if r.armed != "" && r.process.Crashed() {
		r.armed = ""
		r.process.Kill()
		r.process.Restart()
	}
}
