// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package hack tests scripts of this folder.
package hack

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// program writes a test program. Its text knows how many times it ran before, as $before.
func program(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "fake.test")
	text = "#!/usr/bin/env bash\nbefore=$(cat \"$0.runs\" 2> /dev/null | wc -l); echo run >> \"$0.runs\"\n" + text
	if err := os.WriteFile(name, []byte(text), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	return name
}

// TestOnlyCrashesOfTheRaceDetectorAreTriedAgain holds what becomes of a test program under race.sh.
func TestOnlyCrashesOfTheRaceDetectorAreTriedAgain(t *testing.T) {
	t.Parallel()
	const check = `echo 'ThreadSanitizer: CHECK failed: tsan_rtl.cpp:346 "((exiting)) != (0)" (tid=7)' >&2; exit 66`
	const segv = `printf 'SIGSEGV: segmentation violation\n#0 __tsan::SlotLock(__tsan::ThreadState*)\n' >&2; exit 2`
	tests := map[string]struct {
		text string
		code int
		runs int
	}{
		"a program that passes runs once":                             {`exit 0`, 0, 1},
		"a program that fails runs once":                              {`echo '--- FAIL: TestA'; echo 'exit status 1' >&2; exit 1`, 1, 1},
		"a data race is final":                                        {`echo 'WARNING: DATA RACE' >&2; exit 66`, 66, 1},
		"a panic is final":                                            {`printf 'panic: no\n[signal SIGSEGV: segmentation violation]\n' >&2; exit 2`, 2, 1},
		"a crash of something else is final":                          {`printf 'SIGSEGV: segmentation violation\nmain.f()\n' >&2; exit 2`, 2, 1},
		"a crash after a data race is final":                          {`echo 'WARNING: DATA RACE' >&2; ` + check, 66, 1},
		"a crash after a panic is final":                              {`echo 'panic: no' >&2; ` + segv, 2, 1},
		"a program that passes may name a crash":                      {`echo 'ThreadSanitizer: CHECK failed' >&2`, 0, 1},
		"a failed check of the detector is tried again":               {`[ $before = 0 ] || exit 0; ` + check, 0, 2},
		"a bad address in the detector is tried again":                {`[ $before = 0 ] || exit 0; ` + segv, 0, 2},
		"what fails the second time fails":                            {`[ $before = 0 ] || exit 1; ` + check, 1, 2},
		"two crashes are enough":                                      {check, 66, 2},
		"a program is interrupted and ends":                           {`kill -INT $$; exit 0`, 130, 1},
		"a program that asks to be ended by a signal has its own way": {`trap 'exit 3' QUIT; kill -QUIT $$; exit 0`, 3, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := program(t, "echo \"out $*\"\necho err >&2\n"+test.text+"\n")
			noted := fake + ".log"
			var stdout, stderr strings.Builder
			command := exec.CommandContext(t.Context(), "./race.sh", fake, "-test.v", "a b")
			command.Stdout, command.Stderr, command.Env = &stdout, &stderr, append(os.Environ(), "RACE_LOG="+noted)
			if err := command.Run(); command.ProcessState.ExitCode() != test.code {
				t.Errorf("it ends with %v, want exit code %d", err, test.code)
			}
			if n := strings.Count(stdout.String(), "out -test.testlogfile="+filepath.Dir(fake)+"/testlog.txt -test.v a b\n"); n != test.runs {
				t.Errorf("it ran %d times, want %d:\n%s", n, test.runs, &stdout)
			}
			if n := strings.Count(stderr.String(), "err\n"); n != test.runs {
				t.Errorf("stderr came %d times, want %d:\n%s", n, test.runs, &stderr)
			}
			note := ""
			if test.runs > 1 {
				note = "race.sh: the race detector crashed, so " + fake + " runs once more\n"
			}
			got, _ := os.ReadFile(noted) // it is not there without a note
			if diff := cmp.Diff(note, string(got)); diff != "" || !strings.Contains(stderr.String(), note) {
				t.Errorf("what is noted (-want +got):\n%s\nstderr:\n%s", diff, &stderr)
			}
		})
	}
}

// TestAProgramThatHangsShowsItsStacks asks a program for its stacks as go test does.
func TestAProgramThatHangsShowsItsStacks(t *testing.T) {
	t.Parallel()
	fake := program(t, `trap 'echo "goroutine 1 [sleep]" >&2; exit 2' QUIT; echo ready; while :; do sleep 0.1; done`)
	var stderr strings.Builder
	command := exec.CommandContext(t.Context(), "./race.sh", fake)
	command.Stderr = &stderr
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("it says %q (%v)", line, err)
	}
	if err := command.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); command.ProcessState.ExitCode() <= 0 || stderr.String() != "goroutine 1 [sleep]\n" {
		t.Errorf("it ends with %v and says %q", err, &stderr)
	}
}
