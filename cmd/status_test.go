// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/cmd/door"
	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/engine/decide/pause"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/operate/status"
)

// answering is the address of an operator foo that answers each question with the same.
func answering(t *testing.T, answer any) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(ops.OperatorHeader, "foo")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// well is the status of an operator at work with which all is well.
func well() status.Status {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	before := func(d time.Duration) *time.Time { return new(now.Add(-d)) }
	return status.Status{
		At: now, Operator: "foo", Version: "v1.2.3", Process: "foo-0_1", Started: *before(3 * time.Hour), State: status.Working,
		Configuration: status.Configuration{Files: []string{"/etc/handwerk/operator.yaml"}, Digest: "0123456789abcdef", Loaded: *before(3 * time.Hour)},
		Leader:        status.Leader{Mode: "lease", Lock: "shop/foo-leader", Leads: true, Since: before(2 * time.Hour), Holder: "foo-0_1"},
		Resources: []status.Resource{{
			Source:   status.Source{Name: "foos.v1.example.com", State: "running", Objects: 3, Bytes: 12_700_000, LastEvent: before(3 * time.Second)},
			Sources:  []status.Source{{Name: "child/deployments.v1.apps", State: "running", Objects: 2, Bytes: 900, LastEvent: before(time.Minute)}},
			Queue:    status.Queue{Workers: 4, Working: 1, Longest: before(time.Second), Waiting: map[string]int{"fresh": 2, "resync": 1}, Oldest: before(5 * time.Second), Later: 1},
			Health:   map[string]int{"ready": 2, "waiting": 1},
			NotReady: []status.Object{{Name: "shop/web", Health: "waiting", Since: *before(3 * time.Minute), Why: []string{"handler app waits for Secret shop/registry"}}},
			Daemons:  []status.Daemons{{Handler: "watch", Running: 3}},
			States:   []status.InState{{Machine: "rollout", State: "Ready", Objects: 2, Oldest: before(time.Hour)}, {Machine: "rollout", State: "Waiting"}},
		}},
	}
}

// unwell is the status of one that has trouble, with the name of an object that would steer the terminal.
func unwell() status.Status {
	s := well()
	r := &s.Resources[0]
	r.Sources[0].State, r.Sources[0].Message = "forbidden", "list, watch"
	r.Health["failing"], r.Health["held"], r.Looping, r.Parked = 30, 1, 1, 2
	r.NotReady = append(r.NotReady, status.Object{Name: "shop/\x1b[2Jbad", Health: "failing", Since: s.Started, Why: []string{"handler app has failed 3 times: boom\nnext line"}})
	r.Health["paused"] = 1
	r.NotReady = append(r.NotReady, status.Object{Name: "shop/calm", Health: "paused", Since: s.Started, Why: []string{"paused: looking"}})
	s.Pauses = []pause.Pause{
		{By: pause.Operator, Who: "alice", Reason: "moving\x1b[2J", Since: s.Started, Until: s.At}, {By: pause.Namespace, Namespace: "shop", Reason: "looking"},
	}
	s.Degraded = []status.Check{{Name: "child/foos.v1.example.com/deployments.v1.apps", State: "degraded", Message: "forbidden: list, watch"}}
	return s
}

// standby is the status of one that does not lead.
func standby() status.Status {
	s := well()
	s.State, s.Resources = status.StandingBy, nil
	s.Leader = status.Leader{Mode: "lease", Lock: "shop/foo-leader", Holder: "foo-1_7"}
	return s
}

// TestStatus compares all that a person sees of a status, and the exit code that says whether all is well.
func TestStatus(t *testing.T) {
	inGo := well()
	inGo.Configuration.Files, inGo.Leader = nil, status.Leader{Mode: "none", Leads: true}
	tests := map[string]struct {
		answer   status.Status
		args     []string
		env      []string
		terminal bool
	}{
		"status-well":            {answer: well()},
		"status-unwell":          {answer: unwell()},
		"status-standby":         {answer: standby()},
		"status-in-go":           {answer: inGo},
		"status-colored":         {answer: unwell(), terminal: true},
		"status-without-color":   {answer: unwell(), terminal: true, env: []string{"NO_COLOR=1"}},
		"status-json":            {answer: unwell(), args: []string{"-o", "json"}, terminal: true},
		"status-yaml":            {answer: unwell(), args: []string{"-o", "yaml"}},
		"status-other-operator":  {answer: well(), args: []string{"--operator", "bar"}},
		"status-other-configure": {answer: well(), args: []string{"--config", "foo.yaml"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, test.env...)
			b.shows = func(io.Writer) bool { return test.terminal }
			read := b.load
			b.load = func(paths []string, _ *actions.Registry, beside ...func(*dsl.Operator)) (*dsl.Operator, error) {
				op, err := read(paths, nil, beside...)
				if op != nil {
					op.Digest = "another"
				}
				return op, err
			}
			address := answering(t, test.answer)
			code := b.execute(t.Context(), append([]string{"status", "--address", address}, test.args...))
			complaint := b.err.String()
			if code == exitFailed {
				complaint = complaint[len("error: asking at "+address):]
			}
			compareGolden(t, name, fmt.Sprintf("-- exit %d --\n-- stdout --\n%s-- stderr --\n%s", code, b.out.String(), complaint))
		})
	}
}

// TestTheVariableOfTheAddress holds that the client reads the variable that the flag has.
func TestTheVariableOfTheAddress(t *testing.T) {
	if got := envName(ops.DebugFlag); got != door.Variable {
		t.Errorf("the flag has the variable %s, and the client reads %s", got, door.Variable)
	}
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStatusIsWatchedUntilTheEnd holds that status --watch asks again, and on a terminal begins at the top each time.
func TestStatusIsWatchedUntilTheEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		width int
		want  int
	}{
		"on a terminal": {80, 2},
		"in a pipe":     {0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if asked++; asked == 3 {
					stop()
				}
				w.Header().Set(ops.OperatorHeader, "foo")
				if err := json.NewEncoder(w).Encode(status.Status{Operator: "foo", State: status.Working}); err != nil {
					t.Error(err)
				}
			}))
			defer server.Close()
			b := newBench(t)
			b.shows, b.width = func(io.Writer) bool { return tt.width > 0 }, func(io.Writer) int { return tt.width }
			f := &askFlags{output: asText}
			f.target.Address = server.Listener.Addr().String()
			again := make(chan time.Time, 2)
			again <- time.Time{}
			again <- time.Time{}
			if err := b.watchStatus(ctx, f, &b.out, again); err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(b.out.String(), clearScreen); got != tt.want || strings.Count(b.out.String(), "operator") != 2 {
				t.Errorf("the screen is cleared %d times, want %d:\n%s", got, tt.want, b.out.String())
			}
		})
	}
}
