// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets this program be a component, too: what it does then is the value of PLAY.
func TestMain(m *testing.M) {
	switch os.Getenv("PLAY") {
	case "":
		os.Exit(m.Run())
	case "polite":
		time.Sleep(time.Hour)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Print("deaf\n")
		time.Sleep(time.Hour)
	case "failing":
		fmt.Print("one\ntwo\nreason\n")
		os.Exit(3)
	case "child":
		EndWithParent()
		fmt.Print("started\n")
		time.Sleep(time.Hour)
	}
}

func play(t *testing.T, role string) *process {
	t.Helper()
	dir := t.TempDir()
	p, err := startProcess(role, []string{os.Args[0]}, dir, filepath.Join(dir, "log"), "PLAY="+role)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.stop(0) })
	return p
}

func TestStopIsPolite(t *testing.T) {
	p := play(t, "polite")
	p.stop(time.Minute)
	if got := p.cmd.ProcessState.String(); got != "signal: terminated" {
		t.Errorf("it ended with %s", got)
	}
}

func TestStopKillsTheStubborn(t *testing.T) {
	p := play(t, "stubborn")
	awaitText(t, p.log, "deaf")
	p.stop(10 * time.Millisecond)
	if got := p.cmd.ProcessState.String(); got != "signal: killed" {
		t.Errorf("it ended with %s", got)
	}
}

func TestDeathReportsNameStateAndLog(t *testing.T) {
	p := play(t, "failing")
	<-p.done
	got := p.death().Error()
	for _, want := range []string{"failing", "exit status 3", p.log, "  one\n  two\n  reason"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
}

// TestChildEndsWithItsInput stands for a launcher that is killed: its end of the pipe is closed.
func TestChildEndsWithItsInput(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PLAY=child", lifelineVariable+"=1")
	hold, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }() // fails where it has ended
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	hold.Close()
	if err := cmd.Wait(); err == nil || err.Error() != "exit status 1" {
		t.Errorf("it ended with %v", err)
	}
}

func TestMissingProgramIsReported(t *testing.T) {
	dir := t.TempDir()
	_, err := startProcess("etcd", []string{filepath.Join(dir, "nope")}, dir, filepath.Join(dir, "log"))
	if err == nil || !strings.Contains(err.Error(), "starting etcd") {
		t.Errorf("error is %v", err)
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(strings.Repeat("line\n", 5000)+"last\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(tail(path), "\n")
	if len(got) != tailLines || got[0] != "  line" || got[tailLines-1] != "  last" {
		t.Errorf("got %d lines: %q", len(got), got)
	}
}

// awaitText returns when the file has the text: another process writes it, so it has to be asked.
func awaitText(t *testing.T, path, text string) {
	t.Helper()
	for {
		if content, _ := os.ReadFile(path); strings.Contains(string(content), text) {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("%q never came", text)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
