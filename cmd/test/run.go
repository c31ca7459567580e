// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/handwerk-dev/handwerk/sandbox/cases"
)

// Worker is the environment variable that makes the command test a child process, which reads its job from the input.
const Worker = "HANDWERK_TEST_WORKER"

// Settings say which cases to run.
type Settings struct {
	// Files are the files with cases, and Pattern a regular expression for the names of those that are wanted.
	Files   []string
	Pattern string
	// Coverage: it is to be known what of the operators has run.
	Coverage bool
	// Timeout is how long no case may begin or end before the process is ended, by the clock of the machine. What waits for
	// anything outside of its case keeps virtual time from passing.
	Timeout time.Duration
	// Program and Args start a child process; Env is its environment, to which Worker is added.
	Program   string
	Args, Env []string
	// Progress is a terminal on which a line says how far the cases are, from two seconds on. Optional.
	Progress io.Writer
}

// Run runs the cases. It returns the reports of files that cannot be read, and of cases, in the order of the files, and
// what of the operators has run, in the last process if there were several. A
// case that ends the process, as a panic does, has failed; the others run in another process.
func Run(ctx context.Context, s Settings) (all []cases.Report, covered []cases.Part, err error) {
	progress := newProgress(s.Progress)
	defer progress.end()
	job := cases.Job{Files: s.Files, Pattern: s.Pattern, Coverage: s.Coverage}
	for {
		c := &child{settings: s, progress: progress}
		err := c.run(ctx, job)
		all = append(all, c.ended...)
		if err == nil || ctx.Err() != nil {
			return sorted(s.Files, append(all, c.silent()...)), c.covered, ctx.Err()
		}
		switch guilty := c.running; {
		case len(guilty) == 0 && len(c.ended) == 0:
			return nil, nil, fmt.Errorf("running cases: %w\n%s", err, c.words())
		case len(guilty) == 1:
			all = append(all, cases.Report{Ref: guilty[0].Ref, Line: guilty[0].Line, Failures: []cases.Failure{{
				File: guilty[0].File, Line: guilty[0].Line, Message: cause(err), Detail: c.words(),
			}}})
		}
		job.Serial, job.Skip = true, nil
		for _, r := range all {
			job.Skip = append(job.Skip, r.Ref)
		}
	}
}

// child is a process that runs cases.
type child struct {
	settings Settings
	progress *progress
	ended    []cases.Report
	running  []cases.Report
	covered  []cases.Part
	stderr   bytes.Buffer
}

// run runs a process until it ends. An error says that it did not do all of the job.
func (c *child) run(ctx context.Context, job cases.Job) error {
	input, err := json.Marshal(job)
	if err != nil {
		return err
	}
	process := exec.CommandContext(ctx, c.settings.Program, c.settings.Args...)
	process.Env = append(slices.Clone(c.settings.Env), Worker+"=1")
	process.Stdin, process.Stderr = bytes.NewReader(input), &c.stderr
	out, err := process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := process.Start(); err != nil {
		return err
	}
	stuck := time.AfterFunc(c.settings.Timeout, func() { _ = process.Process.Signal(syscall.SIGQUIT) }) // Go writes all stacks then
	whole := c.read(out, func() { stuck.Reset(c.settings.Timeout) })
	late := !stuck.Stop()
	err = process.Wait()
	switch {
	case whole:
		return nil // the exit code says no more than the reports
	case late:
		return fmt.Errorf("%w (%s)", errStuck, c.settings.Timeout)
	}
	return cmp.Or(err, errors.New("it said nothing about some cases"))
}

// silent returns failures of the cases that the process began and did not report before it ended.
func (c *child) silent() (out []cases.Report) {
	for _, r := range c.running {
		r.Begins = false
		r.Failures = []cases.Failure{{File: r.File, Line: r.Line, Message: "the case began, and nothing was said of its end", Detail: c.words()}}
		out = append(out, r)
	}
	return out
}

// errStuck: the process was ended because no case went on.
var errStuck = errors.New("the case did not go on before --timeout; its code may wait for something outside of the case, as a connection")

// read reads the reports of the process, and reports whether all of them came. It calls alive at each of them.
func (c *child) read(out io.Reader, alive func()) bool {
	reports := json.NewDecoder(out)
	for {
		var r cases.Report
		if reports.Decode(&r) != nil {
			return false
		}
		alive()
		c.progress.saw(r)
		switch {
		case r.Done:
			c.covered = r.Coverage
			return true
		case r.Begins:
			c.running = append(c.running, r)
		default:
			c.ended = append(c.ended, r)
			c.running = slices.DeleteFunc(c.running, func(other cases.Report) bool { return other.Ref == r.Ref })
		}
	}
}

// cause says why a case failed whose process did not get to its end.
func cause(err error) string {
	if errors.Is(err, errStuck) {
		return err.Error()
	}
	return "the process ended: " + err.Error()
}

// words are what the process has written about its end: the stacks that keep virtual time from passing, the lines from a
// panic on, or else the last ones.
func (c *child) words() string {
	const most = 40
	text := strings.TrimSpace(c.stderr.String())
	if _, stacks, quit := strings.Cut(text, "SIGQUIT: quit\n"); quit {
		text = strings.Join(slices.DeleteFunc(strings.Split(stacks, "\n\n"), waitsInside), "\n\n")
	}
	lines := strings.Split(text, "\n")
	if at := slices.IndexFunc(lines, dies); at >= 0 {
		lines = lines[at:]
	} else {
		lines = lines[max(0, len(lines)-most):]
	}
	if len(lines) > most {
		lines = append(lines[:most], "…")
	}
	return strings.Join(lines, "\n")
}

// dies reports whether Go writes a line when it ends a process.
func dies(line string) bool {
	return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
}

// waitsInside reports whether the stack of a goroutine is of no case, or of one that waits for virtual time or for another
// goroutine of its case.
func waitsInside(stack string) bool {
	head, _, _ := strings.Cut(stack, "\n")
	return !strings.Contains(head, "synctest bubble") || strings.Contains(head, "durable")
}

// sorted are the reports in the order of the files, and of the cases in each.
func sorted(files []string, all []cases.Report) []cases.Report {
	slices.SortStableFunc(all, func(a, b cases.Report) int {
		return cmp.Or(cmp.Compare(slices.Index(files, a.File), slices.Index(files, b.File)), cmp.Compare(a.Line, b.Line))
	})
	return all
}

// Work is the child process.
func Work(suite *cases.Suite, in io.Reader) error {
	var job cases.Job
	if err := json.NewDecoder(in).Decode(&job); err != nil {
		return fmt.Errorf("reading the job: %w", err)
	}
	out := os.Stdout
	os.Stdout = os.Stderr // what handlers and package testing print is no report
	cases.Work(suite, job, out)
	return nil
}
