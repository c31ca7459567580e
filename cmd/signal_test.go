// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl/actions"
)

func TestSignals(t *testing.T) {
	tests := map[string]struct {
		mode    string
		signals []syscall.Signal
		code    int
	}{
		"SIGTERM stops in good order":              {"orderly", []syscall.Signal{syscall.SIGTERM}, exitOK},
		"SIGINT too":                               {"orderly", []syscall.Signal{syscall.SIGINT}, exitOK},
		"SIGHUP too":                               {"orderly", []syscall.Signal{syscall.SIGHUP}, exitOK},
		"a second SIGHUP is no loss of patience":   {"hung up", []syscall.Signal{syscall.SIGHUP, syscall.SIGHUP}, exitOK},
		"a second signal exits at once":            {"stuck", []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM}, exitInterrupted},
		"a failure while stopping is a failure":    {"failing", []syscall.Signal{syscall.SIGTERM}, exitFailed},
		"the second signal may be of another kind": {"stuck", []syscall.Signal{syscall.SIGTERM, syscall.SIGINT}, exitInterrupted},
	}
	// A program that is started with SIGHUP ignored, as by nohup, heeds that. What this one listens to
	// is not ignored in the programs that it starts.
	own := make(chan os.Signal, 1)
	signal.Notify(own, syscall.SIGHUP)
	defer signal.Stop(own)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			child := exec.CommandContext(t.Context(), os.Args[0])
			lines := started(t, child, test.mode)
			for _, signal := range test.signals {
				if !lines.Scan() { // it says where it is before it is sent on
					t.Fatalf("the program says nothing: %v", lines.Err())
				}
				if err := child.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
			}
			err := child.Wait()
			if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
				t.Fatal(err)
			} else if code := child.ProcessState.ExitCode(); code != test.code {
				t.Errorf("exit code: got %d (%v), want %d", code, exit, test.code)
			}
		})
	}
}

// TestTheEndOfTheReaderIsNotTheEndOfAStop holds that a program comes to its end in order when Ctrl-C has ended the program that
// reads its output, such as tee.
func TestTheEndOfTheReaderIsNotTheEndOfAStop(t *testing.T) {
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), "HANDWERK_TEST_PROGRAM=orderly", "TMPDIR="+t.TempDir())
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if lines := bufio.NewScanner(out); !lines.Scan() {
		t.Fatalf("the program says nothing: %v", lines.Err())
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := child.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err != nil {
		t.Errorf("the program ends with %v", err)
	}
}

// started starts a command, which runs this binary as the program of that mode, and returns the lines that it writes.
func started(t *testing.T, child *exec.Cmd, mode string) *bufio.Scanner {
	t.Helper()
	child.Env = append(os.Environ(), "HANDWERK_TEST_PROGRAM="+mode, "TMPDIR="+t.TempDir())
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	return bufio.NewScanner(out)
}

// signalled is the program that TestSignals sends signals to. It says a line when it runs and
// another when it is to stop.
func signalled(mode string) {
	b := &bench{run: func(ctx context.Context) error {
		again := make(chan os.Signal, 1)
		fmt.Println("running")
		<-ctx.Done()
		if mode == "hung up" {
			signal.Notify(again, syscall.SIGHUP)
		}
		fmt.Println("stopping")
		switch mode {
		case "stuck":
			select {}
		case "failing":
			return errLost
		case "hung up":
			// Another listener shows when the signal has been delivered to all of them.
			<-again
		}
		return nil
	}}
	b.program = program{
		Streams:  Streams{Out: os.Stdout, Err: &strings.Builder{}},
		registry: actions.NewRegistry(),
		parts: parts{
			load: load, engine: b.make,
			inCluster: func() (*rest.Config, error) { return &rest.Config{Host: "https://pod"}, nil },
		},
	}
	b.main(quiet())
}
