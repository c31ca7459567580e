// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	text "github.com/handwerk-dev/handwerk/dsl/source"
)

// Job says what a worker is to do.
type Job struct {
	// Files are the files with cases.
	Files []string
	// Pattern is a regular expression for the names of cases; empty for all.
	Pattern string
	// Skip are the cases that are done already.
	Skip []Ref
	// Serial: one case at a time.
	Serial bool
	// Coverage: the last report has what of the operators has run.
	Coverage bool
}

// Ref names a case.
type Ref struct{ File, Case string }

// Report is what a worker says. It is one of: a file that cannot be read (Case is empty, Failures say why), a case that
// begins (Begins), one that has ended, or the last report (Done).
type Report struct {
	Ref
	// Line is that of the case in its file.
	Line     int           `json:",omitempty"`
	Done     bool          `json:",omitempty"`
	Begins   bool          `json:",omitempty"`
	Took     time.Duration `json:",omitempty"`
	Failures []Failure     `json:",omitempty"`
	// Skipped says why the case did not run; empty if it did.
	Skipped string `json:",omitempty"`
	// Coverage is in the last report: what of the operators has run.
	Coverage []Part `json:",omitempty"`
}

// Work runs cases by package testing, which is what gives them virtual time, and ends the process. It writes a report
// as a line of JSON for each case that begins and that has ended.
func Work(suite *Suite, job Job, out io.Writer) {
	w := &worker{suite: suite, job: job, out: json.NewEncoder(out)}
	suite.branches = job.Coverage
	parallel := "-test.parallel=" + strconv.Itoa(parallelism(job))
	debug.SetGCPercent(800) // clusters are short-lived, and small
	debug.SetMemoryLimit(most)
	os.Args = []string{os.Args[0], parallel, "-test.timeout=0"} // the parent ends a process in which no case goes on
	all := testing.InternalTest{Name: "all", F: func(t *testing.T) {
		t.Cleanup(func() { // all parallel tests have ended then
			last := Report{Done: true}
			if job.Coverage {
				last.Coverage = suite.Coverage()
			}
			w.report(last)
		})
		for _, one := range w.tests() {
			t.Run(one.Name, one.F)
		}
	}}
	testing.Main(regexp.MatchString, []testing.InternalTest{all}, nil, nil)
}

// most is the memory in bytes from which on garbage is collected more often.
const most = 400 << 20

func parallelism(job Job) int {
	if job.Serial {
		return 1
	}
	return max(2, runtime.GOMAXPROCS(0))
}

type worker struct {
	suite *Suite
	job   Job

	mu  sync.Mutex
	out *json.Encoder
}

func (w *worker) report(r Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.out.Encode(r); err != nil {
		fmt.Fprintln(os.Stderr, "reporting:", err)
		os.Exit(1)
	}
}

// tests are the cases as tests.
func (w *worker) tests() (out []testing.InternalTest) {
	pattern := regexp.MustCompile(w.job.Pattern)
	files, errs := w.files()
	for i, name := range w.job.Files {
		f, err := files[i], errs[i]
		if err != nil {
			w.report(Report{Ref: Ref{File: name}, Failures: failuresOf(name, err)})
			continue
		}
		lacks := w.suite.Lacks(f)
		for _, c := range f.Cases {
			ref := Ref{name, c.Name}
			if pattern.MatchString(c.Name) && !slices.Contains(w.job.Skip, ref) {
				if lacks != "" {
					w.report(Report{Ref: ref, Line: c.line(), Skipped: lacks})
					continue
				}
				out = append(out, testing.InternalTest{Name: name + "/" + c.Name, F: func(t *testing.T) { w.run(t, ref, c) }})
			}
		}
	}
	return out
}

// files reads all files at once: no case runs meanwhile, and to compile expressions takes time.
func (w *worker) files() (files []*File, errs []error) {
	files, errs = make([]*File, len(w.job.Files)), make([]error, len(w.job.Files))
	var all sync.WaitGroup
	for i, name := range w.job.Files {
		all.Go(func() { files[i], errs[i] = w.file(name) })
	}
	all.Wait()
	return files, errs
}

// file reads a file and the operator that it is about.
func (w *worker) file(name string) (*File, error) {
	f, err := Read(name)
	if err != nil {
		return nil, err
	}
	if slices.Contains(w.job.Skip, Ref{File: name}) {
		return &File{}, nil
	}
	_, err = w.suite.load(f.config())
	return f, err
}

func failuresOf(name string, err error) (out []Failure) {
	list, is := errors.AsType[text.Faults](err)
	if !is {
		return []Failure{{File: name, Message: err.Error()}}
	}
	for _, f := range list {
		message := f.Message
		if f.Path != "" {
			message = f.Path + ": " + message
		}
		out = append(out, Failure{File: f.File, Line: f.Line, Column: f.Column, Message: message, Detail: f.Excerpt})
	}
	return out
}

func (w *worker) run(t *testing.T, ref Ref, c *Case) {
	t.Parallel()
	line := c.line()
	w.report(Report{Ref: ref, Line: line, Begins: true})
	begun := time.Now()
	failures := w.suite.Test(t, c)
	w.report(Report{Ref: ref, Line: line, Took: time.Since(begun), Failures: failures})
}
