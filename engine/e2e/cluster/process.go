// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is a child process with its output as lines.
type process struct {
	cmd   *exec.Cmd
	lines *Lines
	done  chan struct{} // closed when it has ended and its output is read
}

// Command is [exec.CommandContext] for a program that is also killed when the thread that started it ends, as when
// this process ends. So the goroutine that starts it keeps its thread until the program has ended.
func Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.SysProcAttr = attributes(syscall.SIGKILL)
	return cmd
}

// startProcess starts cmd in its own process group. If this process ends first, for any reason, the child gets the
// signal orphaned.
func startProcess(cmd *exec.Cmd, lines *Lines, orphaned syscall.Signal) (*process, error) {
	p := &process{cmd: cmd, lines: lines, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = lines, lines
	cmd.SysProcAttr = attributes(orphaned)
	cmd.WaitDelay = time.Second // for output that a grandchild holds open
	started := make(chan error)
	go func() {
		// The kernel sends the signal when the thread that started the child ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // ProcessState has it
			lines.end()
			close(p.done)
		}
	}()
	return p, <-started
}

// stop asks the process to stop, and kills it after limit. It reports whether the process stopped when asked.
func (p *process) stop(limit time.Duration) (heeded bool) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails only when it is gone
	select {
	case <-p.done:
		return true
	case <-time.After(limit):
		p.kill()
		return false
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}
