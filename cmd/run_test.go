// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

func TestRunServesUntilTheOperatorHasStopped(t *testing.T) {
	b := newBench(t, "POD_NAME=foo-0")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var draining atomic.Bool
	b.ready = func() []ops.Check {
		if draining.Load() {
			return []ops.Check{{Name: "draining", State: ops.Fail}}
		}
		return []ops.Check{{Name: "started"}}
	}
	b.healthy = func() []ops.Check { return []ops.Check{{Name: "workers"}} }
	var before, during, metrics, alive string
	b.run = func(running context.Context) error {
		klog.FromContext(running).Info("the context has the logger")
		at := addresses(t, b.err.String())
		before, alive, metrics = get(at["health"], "/readyz?verbose"), get(at["health"], "/healthz?verbose"), get(at["metrics"], "/metrics")
		cancel()
		<-running.Done()
		draining.Store(true)
		during = get(at["health"], "/readyz")
		return nil
	}
	code := b.execute(ctx, strings.Fields("run --config foo.yaml --health-probe-bind-address 127.0.0.1:0 --metrics-bind-address 127.0.0.1:0 --debug-bind-address 127.0.0.1:0"))
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, b.err.String())
	}
	for _, c := range []struct{ what, got, want string }{
		{"/readyz while it runs", before, "200 [+]started ok\nreadyz check passed\n"},
		{"/healthz", alive, "200 [+]workers ok\nhealthz check passed\n"},
		{"/readyz while it stops", during, "503 [-]draining failed\nreadyz check failed\n"},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, diff)
		}
	}
	if !strings.Contains(metrics, "go_goroutines") {
		t.Errorf("/metrics: got %.100q", metrics)
	}
	if got := get(addresses(t, b.err.String())["health"], "/readyz"); got != "" {
		t.Errorf("after the end: got %q, want no answer", got)
	}
	want := []string{"starting", "the context has the logger"}
	if diff := cmp.Diff(want, messages(t, b.err.String())); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestRunGivesTheEngineItsPlace(t *testing.T) {
	b := newBench(t, "POD_NAME=foo-0")
	b.stopAtOnce()
	adopted := -1
	b.adopt = func(_ logr.Logger, verbosity int) { adopted = verbosity }
	if code := b.execute(t.Context(), quiet("--zap-log-level=4")); code != exitOK {
		t.Fatalf("exit code %d: %s", code, b.err.String())
	}
	s := b.settings
	if s.PodName != "foo-0" || !regexp.MustCompile(`^foo-0_[0-9a-f-]{36}$`).MatchString(s.Identity) {
		t.Errorf("pod %q with identity %q, want foo-0 and foo-0_UUID", s.PodName, s.Identity)
	}
	if s.Config.Host != "https://api.example:6443" || !strings.HasPrefix(s.Config.UserAgent, "foo/devel (") {
		t.Errorf("API server %q as %q", s.Config.Host, s.Config.UserAgent)
	}
	if s.Metrics == nil || s.Log.GetSink() == nil {
		t.Errorf("metrics %v and log %v must be there", s.Metrics, s.Log)
	}
	if adopted != 4 {
		t.Errorf("what is global was given verbosity %d, want 4", adopted)
	}
	if first, second := identity(""), identity(""); first == second {
		t.Errorf("two processes have one identity")
	}
}

func TestRunFails(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	inUse := taken.Addr().String()
	tests := map[string]struct {
		args []string
		env  []string
		want string
	}{
		"an address in use is named with its flag": {
			args: quiet("--metrics-bind-address=" + inUse),
			want: "error: listening on " + inUse + " (--metrics-bind-address): bind: address already in use\n",
		},
		"a certificate that is not there is named with its flag": {
			args: quiet("--metrics-bind-address=127.0.0.1:0", "--metrics-secure", "--metrics-tls-cert-file=/nowhere/c", "--metrics-tls-private-key-file=/nowhere/k"),
			want: "error: serving on 127.0.0.1:0 (--metrics-bind-address): reading the certificate: open /nowhere/c: no such file or directory\n",
		},
		"no API server": {
			args: quiet(), env: []string{"KUBECONFIG=", "HOME=/nowhere"},
			want: "error: finding the API server: nothing in [/nowhere/.kube/config], and not in a pod (set --kubeconfig)\n",
		},
		"no such context": {
			args: quiet("--context=other"),
			want: "error: reading kubeconfig: context \"other\" does not exist\n",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, test.env...)
			b.stopAtOnce()
			code := b.execute(t.Context(), append(test.args, "--zap-log-level=error"))
			if code != exitFailed {
				t.Errorf("exit code: got %d, want %d", code, exitFailed)
			}
			if diff := cmp.Diff(test.want, b.err.String()); diff != "" {
				t.Errorf("stderr (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMetricsAreOnLoopbackUnlessTheyAreProtected holds where metrics are served without a word about it, and which flags belong
// together.
func TestMetricsAreOnLoopbackUnlessTheyAreProtected(t *testing.T) {
	tests := map[string]struct{ args, want string }{
		"without a word":              {"", "127.0.0.1:8080"},
		"protected":                   {"--metrics-secure", ":8443"},
		"on an address":               {"--metrics-bind-address=:9090", ":9090"},
		"protected, on an address":    {"--metrics-bind-address=:9090 --metrics-secure", ":9090"},
		"turned off by an empty text": {"--metrics-bind-address=", ""},
		"a certificate for nothing":   {"--metrics-tls-cert-file=c --metrics-tls-private-key-file=k", "--metrics-tls-cert-file needs --metrics-secure"},
		"a schema for nothing":        {"--allow-breaking-schema", "--allow-breaking-schema needs --install-crds"},
		"a certificate without a key": {"--metrics-secure --metrics-tls-cert-file=c", "--metrics-tls-cert-file and --metrics-tls-private-key-file need each other"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f, set := &runFlags{}, pflag.NewFlagSet("run", pflag.ContinueOnError)
			f.add(set)
			if err := set.Parse(strings.Fields(tt.args)); err != nil {
				t.Fatal(err)
			}
			got := f.metricsAddress()
			if err := f.check(); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestServeWhile(t *testing.T) {
	errServe, errRun := errors.New("accepting: too many files"), errors.New("handlers hang")
	untilEnd := func(err error) func(context.Context) error {
		return func(ctx context.Context) error { <-ctx.Done(); return err }
	}
	tests := map[string]struct {
		serve error
		run   func(context.Context) error
		want  string
	}{
		"a server that fails stops the run": {errServe, untilEnd(nil), "accepting: too many files"},
		"both may fail":                     {errServe, untilEnd(errRun), "accepting: too many files; handlers hang"},
		"a run that fails stops the server": {nil, func(context.Context) error { return errRun }, "handlers hang"},
		"a run that ends in order stops it too, and requests cut off are no error": {nil, func(context.Context) error { return nil }, "<nil>"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			down := make(chan struct{})
			serve := func() error {
				if test.serve == nil {
					<-down
				}
				return test.serve
			}
			shutdown := func(ctx context.Context) error {
				if _, limited := ctx.Deadline(); !limited || ctx.Err() != nil {
					t.Errorf("the shutdown has no time of its own")
				}
				close(down)
				return context.DeadlineExceeded
			}
			if err := serveWhile(t.Context(), serve, shutdown, test.run); fmt.Sprint(err) != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// TestPrecedence: flag > environment > configuration file > default.
func TestPrecedence(t *testing.T) {
	type seen struct {
		Scope    dsl.Scope
		Settings dsl.Settings
	}
	fromFile := func(change func(*seen)) seen {
		s := seen{Scope: dsl.Scope{Namespaces: []string{"from-file"}, NamespaceSelector: "from=file"}}
		s.Settings.GracePeriod, s.Settings.LeaderElection.Mode = 7*time.Second, dsl.LeaderNone
		change(&s)
		return s
	}
	tests := map[string]struct {
		args []string
		env  []string
		want seen
	}{
		"the file is what counts when nothing else is said": {nil, nil, fromFile(func(*seen) {})},
		"the environment wins over the file": {
			nil, []string{"HANDWERK_GRACE_PERIOD=8s", "HANDWERK_NAMESPACE=a,b"},
			fromFile(func(s *seen) {
				s.Settings.GracePeriod, s.Scope = 8*time.Second, dsl.Scope{Namespaces: []string{"a", "b"}}
			}),
		},
		"a flag wins over the environment": {
			[]string{"--grace-period=9s", "-n", "c", "-n", "!d"}, []string{"HANDWERK_GRACE_PERIOD=8s", "HANDWERK_NAMESPACE=a,b"},
			fromFile(func(s *seen) {
				s.Settings.GracePeriod, s.Scope = 9*time.Second, dsl.Scope{Namespaces: []string{"c", "!d"}}
			}),
		},
		"an empty variable is not set": {
			nil, []string{"HANDWERK_GRACE_PERIOD=", "HANDWERK_QPS="}, fromFile(func(*seen) {}),
		},
		"what is given may be the default": {
			[]string{"--grace-period=0", "--leader-elect=none"}, []string{"HANDWERK_LEADER_ELECT=lease"},
			fromFile(func(s *seen) { s.Settings.GracePeriod = 0 }),
		},
		"an election without a mode is by lease": {
			[]string{"--leader-elect", "--leader-elect-namespace=ns", "--leader-elect-name=lock"}, nil,
			fromFile(func(s *seen) {
				s.Settings.LeaderElection = dsl.LeaderElection{Mode: dsl.LeaderLease, Namespace: "ns", Name: "lock"}
			}),
		},
		"an election that is true is by lease": {
			nil, []string{"HANDWERK_LEADER_ELECT=true", "HANDWERK_LEADER_ELECT_NAMESPACE=ns", "HANDWERK_LEADER_ELECT_NAME=lock"},
			fromFile(func(s *seen) {
				s.Settings.LeaderElection = dsl.LeaderElection{Mode: dsl.LeaderLease, Namespace: "ns", Name: "lock"}
			}),
		},
		"limits come from flags": {
			[]string{"--qps=2.5", "--burst=10"}, []string{"HANDWERK_BURST=20"},
			fromFile(func(s *seen) { s.Settings.QPS, s.Settings.Burst = 2.5, 10 }),
		},
		"limits come from the environment": {
			nil, []string{"HANDWERK_QPS=50", "HANDWERK_BURST=20"},
			fromFile(func(s *seen) { s.Settings.QPS, s.Settings.Burst = 50, 20 }),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, test.env...)
			b.stopAtOnce()
			if code := b.execute(t.Context(), quiet(test.args...)); code != exitOK {
				t.Fatalf("exit code %d: %s", code, b.err.String())
			}
			got := seen{Scope: b.op.Scope, Settings: b.op.Settings}
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestElection(t *testing.T) {
	tests := map[string]struct {
		args      []string
		env       []string
		inPod     string
		namespace string
		stderr    string
	}{
		"none needs nothing":                           {args: []string{"--leader-elect=none"}},
		"none has no use for the configuration's lock": {args: []string{"--config=../samples/kopf/06-peering.yaml", "--leader-elect=none"}},
		"the flag's namespace comes first": {
			args: []string{"--leader-elect", "--leader-elect-namespace=flag"}, env: []string{"POD_NAMESPACE=env"}, inPod: "pod",
			namespace: "flag",
		},
		"then POD_NAMESPACE": {args: []string{"--leader-elect"}, env: []string{"POD_NAMESPACE=env"}, inPod: "pod", namespace: "env"},
		"then the pod's own": {args: []string{"--leader-elect"}, inPod: "pod\n", namespace: "pod"},
		"outside a pod a namespace is required": {
			args:   []string{"--leader-elect"},
			stderr: "error: electing the leader by lease: outside a pod, --leader-elect-namespace is required\n",
		},
		"for life, the pod must have a name": {
			args: []string{"--leader-elect=life"}, inPod: "pod",
			stderr: "error: electing the leader for life: POD_NAME is not set (take it from the pod's metadata.name)\n",
		},
		"for life, with a name": {args: []string{"--leader-elect=life"}, env: []string{"POD_NAME=foo-0"}, inPod: "pod", namespace: "pod"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, test.env...)
			b.stopAtOnce()
			if test.inPod != "" {
				if err := os.WriteFile(b.podNamespace, []byte(test.inPod), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			code := b.execute(t.Context(), append(quiet("--zap-log-level=error"), test.args...))
			if (code == exitFailed) != (test.stderr != "") || b.err.String() != test.stderr {
				t.Fatalf("exit code %d with %q, want %q", code, b.err.String(), test.stderr)
			}
			if code == exitOK && b.op.Settings.LeaderElection.Namespace != test.namespace {
				t.Errorf("namespace: got %q, want %q", b.op.Settings.LeaderElection.Namespace, test.namespace)
			}
		})
	}
}

// addresses reads the log line that says where is served.
func addresses(t *testing.T, log string) map[string]string {
	t.Helper()
	for line := range strings.Lines(log) {
		if strings.Contains(line, `"starting"`) {
			var fields struct{ Health, Metrics string }
			if err := json.Unmarshal([]byte(line), &fields); err != nil {
				t.Fatal(err)
			}
			return map[string]string{"health": fields.Health, "metrics": fields.Metrics}
		}
	}
	t.Fatalf("no line says where is served: %s", log)
	return nil
}

// messages reads what the log's lines say.
func messages(t *testing.T, log string) []string {
	t.Helper()
	var out []string
	for line := range strings.Lines(log) {
		var fields struct{ Msg string }
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		out = append(out, fields.Msg)
	}
	return out
}

// get returns the status and the body, and nothing when there is no answer.
func get(address, path string) string {
	resp, err := http.Get("http://" + filepath.ToSlash(address) + path)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return fmt.Sprintf("%d %s", resp.StatusCode, body)
}
