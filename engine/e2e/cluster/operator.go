// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// Launch says how to start the operator's program.
type Launch struct {
	// Program is the path of the program. Defaults to that of Main, built like the tests: with the race detector if
	// they have it.
	Program string
	// Main is the main package, as in "samples/etcd". Defaults to "cmd/operator".
	Main string
	// Measured: the program is built without the race detector, which needs several times the memory, and [Operator.Peak] has its peak.
	Measured bool
	// Config is its config for the API server. Defaults to the admin's.
	Config *rest.Config
	// Args are its arguments, as in "run", "--config", "x.yaml". The working directory is the module's folder.
	Args []string
	// Env is added to the environment. That has no variables of Handwerk's except addresses with free ports, which
	// the log names.
	Env []string
}

// Operator is an operator's program in its own process.
type Operator struct {
	*Lines // of its standard output and error

	process *process
	// peak is the most memory that was seen; see [Operator.Peak].
	peak atomic.Int64
}

// Exit is the end of a process.
type Exit struct {
	// Code is the exit code; -1 if a signal ended the process.
	Code int
}

// Operator starts the operator's program. When the test ends, or the test's process dies, the process is killed if
// it still runs.
func (c *Cluster) Operator(t testing.TB, l Launch) *Operator {
	t.Helper()
	if l.Program == "" {
		l.Program = c.Program(t, cmp.Or(l.Main, "cmd/operator"), l.Measured)
	}
	if l.Config == nil {
		l.Config = c.config
	}
	cmd := exec.Command(l.Program, l.Args...)
	cmd.Dir = c.root
	cmd.Env = append(ownEnvironment(), "KUBECONFIG="+WriteKubeconfig(t, l.Config),
		"HANDWERK_HEALTH_PROBE_BIND_ADDRESS=127.0.0.1:0", "HANDWERK_METRICS_BIND_ADDRESS=127.0.0.1:0", "HANDWERK_DEBUG_BIND_ADDRESS=127.0.0.1:0")
	cmd.Env = append(cmd.Env, l.Env...)
	p, err := startProcess(cmd, newEcho(t), syscall.SIGKILL)
	if err != nil {
		t.Fatalf("starting operator: %v", err)
	}
	t.Cleanup(p.kill)
	o := &Operator{Lines: p.lines, process: p}
	if l.Measured {
		go o.measure()
	}
	return o
}

// Program returns the path of the program of a main package, built as in [Launch].
func (c *Cluster) Program(t testing.TB, main string, measured bool) string {
	t.Helper()
	program, err := c.builds.program(c, build{main, raced && !measured})
	if err != nil {
		t.Fatalf("building %s: %v", main, err)
	}
	return program
}

// Signal sends a signal, such as SIGSTOP.
func (o *Operator) Signal(t testing.TB, signal os.Signal) {
	t.Helper()
	if err := o.process.cmd.Process.Signal(signal); err != nil {
		t.Fatalf("sending %s to operator: %v", signal, err)
	}
}

// Kill ends the process like a crash, and returns when it is gone. It is safe for use by several goroutines, and
// may be called more than once.
func (o *Operator) Kill() { o.process.kill() }

// Wait waits until the process has ended.
func (o *Operator) Wait(t testing.TB) Exit {
	t.Helper()
	select {
	case <-o.process.done:
		return Exit{Code: o.process.cmd.ProcessState.ExitCode()}
	case <-time.After(Patience):
		t.Fatalf("waiting for the operator's end: %v", errLate)
		return Exit{}
	}
}

// Stop asks the process to stop, as the kubelet does, and returns its exit.
func (o *Operator) Stop(t testing.TB) Exit {
	t.Helper()
	o.Signal(t, syscall.SIGTERM)
	return o.Wait(t)
}

// PID returns the process id.
func (o *Operator) PID() int { return o.process.cmd.Process.Pid }

// Peak returns the largest anonymous memory, in bytes, that was measured in the process of a measured launch. It leaves
// out pages of the program and of other files: the kernel reclaims these when a container comes to its limit. Zero means
// unknown, because only Linux reports it.
func (o *Operator) Peak(t testing.TB) int {
	t.Helper()
	if peak := o.peak.Load(); peak > 0 || runtime.GOOS != "linux" {
		return int(peak)
	}
	t.Fatal("reading the operator's memory: the kernel has reported none")
	return 0
}

// measure looks at the memory of the process until it ends. The kernel keeps a peak, but one that counts the pages of files.
func (o *Operator) measure() {
	for {
		o.peak.Store(max(o.peak.Load(), ownMemory(o.PID())))
		select {
		case <-o.process.done:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// ownMemory returns how much memory a process has that is no file's, in bytes; zero if the kernel does not say.
func ownMemory(pid int) (bytes int64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if _, err := fmt.Sscanf(line, "RssAnon: %d kB", &bytes); err == nil {
			return bytes << 10
		}
	}
	return 0
}

// build is a program to build: a main package, with or without the race detector.
type build struct {
	main  string
	raced bool
}

// builds builds each program once.
type builds struct {
	mu   sync.Mutex
	done map[build]func() (program string, err error)
}

func (b *builds) program(c *Cluster, which build) (string, error) {
	b.mu.Lock()
	if b.done == nil {
		b.done = map[build]func() (string, error){}
	}
	if b.done[which] == nil {
		b.done[which] = sync.OnceValues(func() (string, error) { return which.in(c.root, c.dir) })
	}
	once := b.done[which]
	b.mu.Unlock()
	return once()
}

// in builds the program from a folder of the module into another folder.
func (b build) in(module, dir string) (string, error) {
	program, args := filepath.Join(dir, filepath.Base(b.main)), []string{"build"}
	if b.raced {
		program, args = program+"-race", append(args, "-race")
	}
	build := exec.Command("go", append(args, "-o", program, "./"+b.main)...)
	build.Dir = module
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w:\n%s", err, out)
	}
	return program, nil
}

// ownEnvironment returns this process's environment without variables that affect an operator.
func ownEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "HANDWERK_") || strings.HasPrefix(variable, "KUBECONFIG=") || strings.HasPrefix(variable, "POD_")
	})
}
