// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// readyz are checks with one of two resources degraded.
func readyz() []ops.Check {
	return []ops.Check{
		{Name: "started"},
		{Name: "resource/foos.v1.example.com", Message: "3 objects"},
		{Name: "resource/bars.v1.example.com", State: ops.Warn, Message: "forbidden: list\nno CRD"},
	}
}

// health is a function that returns the checks of /readyz, or nil.
type health func() []ops.Check

func (h health) Ready() []ops.Check {
	if h == nil {
		return nil
	}
	return h()
}

func (health) Healthy() []ops.Check { return []ops.Check{{Name: "workers"}} }

func TestReadyz(t *testing.T) {
	healthy := func() []ops.Check { return []ops.Check{{Name: "started"}, {Name: "resource/foos"}} }
	draining := func() []ops.Check {
		return append(readyz(), ops.Check{Name: "draining", State: ops.Fail, Message: "stopping"})
	}
	degraded := func() []ops.Check {
		return []ops.Check{{Name: "started"}, {Name: "resource/bars", State: ops.Warn}, {Name: "leader", State: ops.Warn}}
	}
	child := func() []ops.Check {
		return []ops.Check{{Name: "resource/bars"}, {Name: "child/bars/pods", State: ops.Warn}}
	}
	wicked := func() []ops.Check { return []ops.Check{{Name: "paused/foos", Message: "a\n[!]b\x1b[2J"}} }
	const verbose = "[+]started ok\n[+]resource/foos.v1.example.com ok: 3 objects\n" +
		"[!]resource/bars.v1.example.com degraded: forbidden: list; no CRD\n"
	tests := map[string]struct {
		checks func() []ops.Check
		path   string
		status int
		body   string
	}{
		"what passes says ok":                               {healthy, "/readyz", 200, "ok"},
		"without checks it passes":                          {nil, "/readyz?verbose", 200, "[+]ping ok\nreadyz check passed\n"},
		"one degraded resource does not make it unready":    {readyz, "/readyz", 200, "ok"},
		"verbose shows every check":                         {readyz, "/readyz?verbose", 200, verbose + "readyz check passed\n"},
		"a failed check fails the whole and is reported":    {draining, "/readyz", 503, verbose + "[-]draining failed: stopping\nreadyz check failed\n"},
		"resources that are all degraded fail the whole":    {degraded, "/readyz", 503, "[+]started ok\n[!]resource/bars degraded\n[!]leader degraded\nreadyz check failed: every resource is degraded\n"},
		"what is degraded and no resource does not fail":    {child, "/readyz", 200, "ok"},
		"an excluded check does not count":                  {draining, "/readyz?exclude=draining", 200, "ok"},
		"several checks can be excluded":                    {draining, "/readyz?verbose&exclude=draining&exclude=resource/bars.v1.example.com", 200, "[+]started ok\n[+]resource/foos.v1.example.com ok: 3 objects\n[+]resource/bars.v1.example.com excluded: ok\n[+]draining excluded: ok\nreadyz check passed\n"},
		"excluding an unknown check is reported":            {healthy, "/readyz?verbose&exclude=nope", 200, "[+]started ok\n[+]resource/foos ok\nwarn: cannot exclude \"nope\": no such check\nreadyz check passed\n"},
		"one check says ok":                                 {readyz, "/readyz/started", 200, "ok"},
		"one check can be verbose":                          {readyz, "/readyz/resource/foos.v1.example.com?verbose", 200, "[+]resource/foos.v1.example.com ok: 3 objects\n"},
		"one check that is degraded fails when it is asked": {readyz, "/readyz/resource/bars.v1.example.com", 503, "[!]resource/bars.v1.example.com degraded: forbidden: list; no CRD\n"},
		"one check that is not there is not found":          {readyz, "/readyz/nope", 404, "readyz has no check \"nope\"\n"},
		"a message is one line and steers no terminal":      {wicked, "/readyz/paused/foos?verbose", 200, `[+]paused/foos ok: a; [!]b\u001b[2J` + "\n"},
		"a slash at the end changes nothing":                {healthy, "/readyz/", 200, "ok"},
		"healthz has checks of its own":                     {draining, "/healthz?verbose", 200, "[+]workers ok\nhealthz check passed\n"},
		"other paths are not found":                         {healthy, "/", 404, "404 page not found\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := serve(t, ops.Settings{
				HealthAddress: "127.0.0.1:0",
				Health:        health(test.checks),
			})
			resp, body := get(t, "http://"+s.HealthAddress()+test.path)
			if resp.StatusCode != test.status {
				t.Errorf("status: got %d, want %d", resp.StatusCode, test.status)
			}
			if diff := cmp.Diff(test.body, body); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			if test.path != "/" && resp.Header.Get("Cache-Control") != "no-cache, no-store" {
				t.Errorf("Cache-Control: got %q", resp.Header.Get("Cache-Control"))
			}
		})
	}
}

func TestProbesAreRead(t *testing.T) {
	s := serve(t, ops.Settings{HealthAddress: "127.0.0.1:0"})
	resp, err := http.Post("http://"+s.HealthAddress()+"/readyz", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST /readyz: got %d, want %d", resp.StatusCode, http.StatusMethodNotAllowed)
	}
}

func TestMetricsAndProfilesHaveTheirAddresses(t *testing.T) {
	m := ops.NewMetrics()
	m.Leader("foo-leader", true)
	s := serve(t, ops.Settings{
		HealthAddress: "127.0.0.1:0", MetricsAddress: "127.0.0.1:0", PprofAddress: "127.0.0.1:0", Metrics: m,
	})
	tests := map[string]struct {
		url    string
		status int
		want   string
	}{
		"metrics are at theirs":         {s.MetricsAddress() + "/metrics", 200, "leader_election_master_status{name=\"foo-leader\"} 1\n"},
		"profiles are at theirs":        {s.PprofAddress() + "/debug/pprof/goroutine?debug=1", 200, "goroutine profile:"},
		"the index of profiles too":     {s.PprofAddress() + "/debug/pprof/", 200, "heap"},
		"metrics are not with probes":   {s.HealthAddress() + "/metrics", 404, "not found"},
		"profiles are not with probes":  {s.HealthAddress() + "/debug/pprof/", 404, "not found"},
		"probes are not with metrics":   {s.MetricsAddress() + "/readyz", 404, "not found"},
		"profiles are not with metrics": {s.MetricsAddress() + "/debug/pprof/", 404, "not found"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			resp, body := get(t, "http://"+test.url)
			if resp.StatusCode != test.status || !strings.Contains(body, test.want) {
				t.Errorf("got %d and %.200q, want %d and %q", resp.StatusCode, body, test.status, test.want)
			}
		})
	}
}

func TestAddressesThatAreOff(t *testing.T) {
	s := ops.NewServer(ops.Settings{HealthAddress: "", MetricsAddress: "0", PprofAddress: "0"})
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.HealthAddress() + s.MetricsAddress() + s.PprofAddress(); got != "" {
		t.Errorf("addresses: got %q, want none", got)
	}
	if err := errors.Join(s.Serve(), s.Shutdown(t.Context())); err != nil {
		t.Errorf("serving nothing: %v", err)
	}
}

func TestListenNamesAddressAndFlag(t *testing.T) {
	taken := listen(t)
	tests := map[string]struct {
		settings ops.Settings
		want     string
	}{
		"an address in use": {
			ops.Settings{HealthAddress: "127.0.0.1:0", MetricsAddress: taken},
			"listening on " + taken + " (--metrics-bind-address): bind: address already in use",
		},
		"no port": {
			ops.Settings{HealthAddress: "localhost"},
			"listening on localhost (--health-probe-bind-address): address localhost: missing port in address",
		},
		"no such port": {
			ops.Settings{PprofAddress: "127.0.0.1:99999"},
			"listening on 127.0.0.1:99999 (--pprof-bind-address): address 99999: invalid port",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := ops.NewServer(test.settings)
			err := s.Listen(t.Context())
			if err == nil || err.Error() != test.want {
				t.Fatalf("got %v, want %s", err, test.want)
			}
			// What was taken before the error is free again.
			if addr := s.HealthAddress(); addr != "" {
				l, err := net.Listen("tcp", addr)
				if err != nil {
					t.Fatalf("after the error: %v", err)
				}
				_ = l.Close()
			}
		})
	}
}

func TestShutdownWaitsForRequestsUnderWay(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	s := ops.NewServer(ops.Settings{HealthAddress: "127.0.0.1:0", Health: health(func() []ops.Check {
		close(entered)
		<-release
		return nil
	})})
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	served, asked, down := make(chan error, 1), make(chan int, 1), make(chan error, 1)
	go func() { served <- s.Serve() }()
	go func() { asked <- status("http://" + s.HealthAddress() + "/readyz") }()
	<-entered
	go func() { down <- s.Shutdown(context.WithoutCancel(t.Context())) }()
	if err := <-served; err != nil { // returns as soon as nothing new is let in
		t.Errorf("Serve: %v", err)
	}
	select {
	case err := <-down:
		t.Errorf("Shutdown returned %v with a request under way", err)
	default:
	}
	close(release)
	if code := <-asked; code != 200 {
		t.Errorf("the request under way: got status %d, want 200", code)
	}
	if err := <-down; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if code := status("http://" + s.HealthAddress() + "/readyz"); code != 0 {
		t.Errorf("after the shutdown: got status %d, want no answer", code)
	}
}

func TestShutdownCutsOffWhatLastsLongerThanItsContext(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	s := serve(t, ops.Settings{HealthAddress: "127.0.0.1:0", Health: health(func() []ops.Check {
		close(entered)
		<-release
		return nil
	})})
	asked := make(chan int, 1)
	go func() { asked <- status("http://" + s.HealthAddress() + "/readyz") }()
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: got %v, want the deadline", err)
	}
	if code := <-asked; code != 0 {
		t.Errorf("the request: got status %d, want none", code)
	}
}

// serve runs a server until the test ends.
func serve(t *testing.T, settings ops.Settings) *ops.Server {
	t.Helper()
	settings.Log = logr.Discard()
	s := ops.NewServer(settings)
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	t.Cleanup(func() {
		_ = s.Shutdown(context.Background())
		if err := <-served; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	return s
}

func listen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// status is 0 when there was no answer.
func status(url string) int {
	resp, err := http.Get(url)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}
