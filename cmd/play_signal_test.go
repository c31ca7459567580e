// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/handlers"
)

// played is a program that plays an operator which marks each ConfigMap, and hangs when it is to stop. It says a line when it
// has marked one, and another when it hangs.
func played(out io.Writer) {
	p := Program{Registry: handlers.Standard(), Extra: []func(*dsl.Operator){func(op *dsl.Operator) {
		op.Name = "marks"
		op.Resource("configmaps.v1", func(r *dsl.Resource) {
			r.OnReconcile("mark", func(_ context.Context, r *dsl.Request) error {
				r.Patch.Set("data.mark", strconv.Itoa(os.Getpid()))
				return nil
			})
		})
	}}}.inner(Streams{Out: out, Err: os.Stderr, Env: os.Environ()})
	p.main(os.Args[1:])
}

// hanging is a terminal that takes no line about a stop.
type hanging struct{ out *os.File }

// Write writes a line.
func (h hanging) Write(line []byte) (int, error) {
	switch {
	case bytes.Contains(line, []byte("operator stops")):
		fmt.Fprintln(h.out, "it hangs")
		select {}
	case bytes.Contains(line, []byte("data.mark")):
		fmt.Fprintln(h.out, "it has marked")
	}
	return len(line), nil
}

// player starts the program, and returns when it has marked an object.
func player(t *testing.T, args ...string) (child *exec.Cmd, says func() string) {
	t.Helper()
	child = exec.CommandContext(t.Context(), os.Args[0], append([]string{"play"}, args...)...)
	child.Stderr = t.Output()
	lines := started(t, child, "play")
	says = func() string { lines.Scan(); return lines.Text() }
	if first := says(); first != "it has marked" {
		t.Fatalf("the program says %q", first)
	}
	return child, says
}

// interrupt presses Ctrl-C twice, and holds that the program hangs in between and then exits at once.
func interrupt(t *testing.T, child *exec.Cmd, says func() string) {
	t.Helper()
	for _, want := range []string{"it hangs", ""} {
		if err := child.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		got := says()
		for got == "it has marked" {
			got = says()
		}
		if got != want {
			t.Fatalf("the program says %q, want %q", got, want)
		}
	}
	if _ = child.Wait(); child.ProcessState.ExitCode() != exitInterrupted {
		t.Errorf("exit code: got %d, want %d", child.ProcessState.ExitCode(), exitInterrupted)
	}
}

func TestASecondCtrlCLeavesNothing(t *testing.T) {
	child, says := player(t)
	interrupt(t, child, says)
	temporary := strings.TrimPrefix(child.Env[len(child.Env)-1], "TMPDIR=")
	if left, err := filepath.Glob(filepath.Join(temporary, "*")); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}

func TestASecondCtrlCLeavesTheKeptState(t *testing.T) {
	keep := t.TempDir()
	child, says := player(t, "--keep", keep)
	interrupt(t, child, says)
	holdsState(t, keep, `"mark":"`+strconv.Itoa(child.Process.Pid)+`"`)
}

func TestAKilledPlayGoesOnWithWhatWasKept(t *testing.T) {
	keep := t.TempDir()
	first, _ := player(t, "--keep", keep)
	for kept := false; !kept; time.Sleep(10 * time.Millisecond) { // another process writes the file, and says nothing of it
		_, err := os.Stat(filepath.Join(keep, "state.json"))
		kept = err == nil
	}
	if err := first.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // it was killed
	second, says := player(t, "--keep", keep)
	interrupt(t, second, says)
	holdsState(t, keep, `"mark":"`+strconv.Itoa(second.Process.Pid)+`"`)
}

// holdsState holds that a folder has a state with a text, and nothing else.
func holdsState(t *testing.T, keep, text string) {
	t.Helper()
	entries, err := os.ReadDir(keep)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v is left: %v", entries, err)
	}
	if state, err := os.ReadFile(filepath.Join(keep, entries[0].Name())); err != nil || !strings.Contains(string(state), text) {
		t.Errorf("the state is %s: %v", state, err)
	}
}

// BenchmarkPlay takes the time from the start of the program until a client has an answer from its API server, by TLS.
// The processor time is that of the whole run.
func BenchmarkPlay(b *testing.B) {
	var used time.Duration
	for b.Loop() {
		child := exec.CommandContext(b.Context(), os.Args[0], "play")
		child.Env = append(os.Environ(), "HANDWERK_TEST_PROGRAM=play plainly")
		out, err := child.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := child.Start(); err != nil {
			b.Fatal(err)
		}
		kubeconfig := ""
		for lines := bufio.NewScanner(out); kubeconfig == "" && lines.Scan(); {
			_, kubeconfig, _ = strings.Cut(lines.Text(), "export KUBECONFIG=")
		}
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := discovery.NewDiscoveryClientForConfigOrDie(config).RESTClient().Get().AbsPath("/readyz").DoRaw(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		_ = child.Process.Signal(os.Interrupt) // it has not ended
		_ = child.Wait()                       // how it ends is no matter
		used += child.ProcessState.UserTime() + child.ProcessState.SystemTime()
		b.StartTimer()
	}
	b.ReportMetric(float64(used.Milliseconds())/float64(b.N), "cpu-ms/op")
}
