// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

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
)

// Worker is the environment variable that makes the command plan a child process, which reads its job from the input.
const Worker = "HANDWERK_PLAN_WORKER"

// Process is the program that plans in a child process.
type Process struct {
	// Program and Args start the process; Env is its environment, to which Worker is added.
	Program   string
	Args, Env []string
	// In is what "-" among the job's files stands for. Optional.
	In io.Reader
	// Err gets what the process writes to its standard error. Required.
	Err io.Writer
	// Bar shows the progress.
	Bar Bar
}

// ErrSaid is the error of [Run] if the process has written the reason to its standard error.
var ErrSaid = errors.New("planning failed")

// Run makes a plan in a child process, because virtual time needs a process of its own.
func Run(ctx context.Context, p Process, job Job) (*Report, error) {
	if os.Getenv(Worker) != "" {
		return nil, errors.New("planning: the program was started for the twin, and did not run its command line: a test binary needs a TestMain for that")
	}
	input, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	in := io.Reader(bytes.NewReader(append(input, '\n')))
	if slices.Contains(job.Objects, "-") && p.In != nil {
		in = io.MultiReader(in, p.In)
	}
	process := exec.CommandContext(ctx, p.Program, p.Args...)
	process.Env = append(slices.Clone(p.Env), Worker+"=1")
	var said strings.Builder
	process.Stdin, process.Stderr = in, io.MultiWriter(p.Err, &said)
	out, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("starting a process for the twin: %w", err)
	}
	var answer Answer
	answers := json.NewDecoder(out)
	read := answers.Decode(&answer)
	for read == nil && answer.Report == nil && answer.Error == "" {
		p.Bar.show(answer.Seen)
		answer = Answer{}
		read = answers.Decode(&answer)
	}
	p.Bar.clear()
	ended := process.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case answer.Error != "":
		return nil, errors.New(answer.Error)
	case answer.Report != nil:
		return answer.Report, nil
	case said.Len() > 0:
		return nil, ErrSaid
	}
	return nil, fmt.Errorf("planning: the process of the twin ended: %w", cmp.Or(ended, read))
}
