// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// lifelineVariable marks a child of this same program: its standard input ends when the
	// launcher does.
	lifelineVariable = "CONTROLPLANE_LIFELINE"
	tailLines        = 20
	tailBytes        = 8 << 10
)

// process is a running component.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when the process has ended
}

// startProcess starts a command in dir, with its output appended to the file log.
func startProcess(name string, command []string, dir, log string, env ...string) (*process, error) {
	output, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	defer output.Close()
	lifeline, hold, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	defer lifeline.Close()

	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, lifeline, output, output
	cmd.Env = append(environment(), append(env, lifelineVariable+"=1")...)
	cmd.SysProcAttr = childAttributes()
	p := &process{name: name, cmd: cmd, log: log, done: make(chan struct{})}
	if err := p.run(hold); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return p, nil
}

// environment is the launcher's own, without what etcd and kwok would take for settings.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "ETCD_") || strings.HasPrefix(variable, "KWOK_")
	})
}

// run starts the command and keeps the thread that did it: the kernel's parent death signal is sent
// when the thread of the parent ends, not the process.
func (p *process) run(hold *os.File) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer hold.Close()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // ProcessState has it
			close(p.done)
		}
	}()
	return <-started
}

// stop asks the process to end, kills it when patience is over, and returns when it is gone.
func (p *process) stop(patience time.Duration) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails only when it is gone
	select {
	case <-p.done:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// death describes the end of a process that should have gone on.
func (p *process) death() error {
	return fmt.Errorf("running %s: ended by itself (%s); its log %s ends:\n%s", p.name, p.cmd.ProcessState, p.log, tail(p.log))
}

// tail returns the last lines of a file, indented.
func tail(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	if _, err := file.Seek(-tailBytes, io.SeekEnd); err != nil {
		_, _ = file.Seek(0, io.SeekStart) // shorter than that
	}
	text, _ := io.ReadAll(file)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	return "  " + strings.Join(lines, "\n  ")
}

// EndWithParent is called first in a component's process. Should the launcher be killed, the process
// ends too, also on systems whose kernel does not see to it. It does nothing in a process that was
// not started by the launcher.
func EndWithParent() {
	if os.Getenv(lifelineVariable) == "" {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
}
