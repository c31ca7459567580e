// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/handwerk-dev/handwerk/bench/looks"
)

// farewell is how long a program may take to end when it is asked to.
const farewell = time.Minute

// launch says how a program is started. Env is one variable more than this process has.
type launch struct {
	path string
	args []string
	env  string
	log  string
}

// process is a program that runs.
type process struct {
	cmd *exec.Cmd
	log string
	// started is when it was.
	started time.Time
	// looked is closed at lookedAt, when it reports that it has looked at everything.
	looked   chan struct{}
	lookedAt time.Time
	// ended is closed when it has ended and was waited for.
	ended chan struct{}
	err   error
	// profiling writes profiles of the program, if they are wanted.
	profiling *profiling
	// metrics is the address of the metrics of one that has no other way to report.
	metrics string
}

// start starts a program; stop must be called in the end.
func start(l launch) (*process, error) {
	log, err := os.Create(l.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &process{cmd: exec.Command(l.path, l.args...), log: l.log, looked: make(chan struct{}), ended: make(chan struct{})}
	p.cmd.Env, p.cmd.Stderr = append(os.Environ(), l.env), log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is for this program, which ends the others in order
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.started = time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", l.path, err)
	}
	go p.read(out)
	return p, nil
}

// read reads the reports of the program. Other lines are for people.
func (p *process) read(out io.Reader) {
	defer close(p.ended)
	scanner := bufio.NewScanner(out)
	for scanner.Scan() {
		if scanner.Text() == looks.Looked {
			p.lookedAt = time.Now()
			close(p.looked)
		}
	}
	p.err = p.cmd.Wait()
}

// stop ends the program.
func (p *process) stop() error {
	if p.profiling != nil {
		p.profiling.finish()
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	kill := time.AfterFunc(farewell, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	<-p.ended
	if p.err != nil {
		return fmt.Errorf("%s: %w: %s", p.cmd.Path, p.err, p.complaint())
	}
	return nil
}

// while returns a context that ends when the program does.
func (p *process) while(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-p.ended:
			cancel(errors.New("it ended early: " + p.complaint()))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// complaint is the end of what the program logged.
func (p *process) complaint() string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	text := strings.TrimSpace(string(data))
	return text[max(0, len(text)-500):]
}
