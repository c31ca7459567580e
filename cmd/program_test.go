// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/cmd/plan"
	"github.com/handwerk-dev/handwerk/cmd/test"
	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/source"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/cluster/crd"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// TestMain lets the test binary be a program of its own, for tests that send it signals, and for those of cases.
func TestMain(m *testing.M) {
	switch mode := os.Getenv("HANDWERK_TEST_PROGRAM"); mode {
	case "":
	case "play":
		played(hanging{os.Stdout})
	case "play plainly":
		played(os.Stdout)
	default:
		signalled(mode)
	}
	if os.Getenv(test.Worker) != "" || os.Getenv(plan.Worker) != "" {
		worker()
	}
	os.Exit(m.Run())
}

// bench is a program whose parts are those of a test.
type bench struct {
	program

	out, err buffer
	// op and settings are what the engine was made with.
	op       *dsl.Operator
	settings engine.Settings
	// run is the operator's life; it waits for the end by default.
	run     func(context.Context) error
	ready   func() []ops.Check
	healthy func() []ops.Check
}

func newBench(t *testing.T, env ...string) *bench {
	t.Helper()
	b := &bench{run: func(ctx context.Context) error { <-ctx.Done(); return nil }}
	kubeconfig := writeFile(t, "kubeconfig", kubeconfigOf("https://api.example:6443"))
	b.program = program{
		Streams:  Streams{Out: &b.out, Err: &b.err, Env: append([]string{"KUBECONFIG=" + kubeconfig}, env...)},
		registry: actions.NewRegistry(),
		parts: parts{
			load:      load,
			schema:    func(*actions.Registry) ([]byte, error) { return []byte(`{"title": "Operator"}`), nil },
			engine:    b.make,
			inCluster: func() (*rest.Config, error) { return nil, rest.ErrNotInCluster },
			try: func(context.Context, *dsl.Operator, *rest.Config, *dsl.Resource) (crd.Trial, error) {
				return crd.Trial{}, nil
			},
			podNamespace: filepath.Join(t.TempDir(), "namespace"),
		},
	}
	return b
}

func (b *bench) make(op *dsl.Operator, s engine.Settings) (machine, error) {
	b.op, b.settings = op, s
	return b, nil
}

// Run implements machine.
func (b *bench) Run(ctx context.Context) error { return b.run(ctx) }

// Ready implements machine.
func (b *bench) Ready() []ops.Check {
	if b.ready == nil {
		return nil
	}
	return b.ready()
}

// Healthy implements machine.
func (b *bench) Healthy() []ops.Check {
	if b.healthy == nil {
		return nil
	}
	return b.healthy()
}

// Ask implements machine.
func (b *bench) Ask(_ context.Context, question string, _ url.Values) (any, error) {
	return map[string]string{"asked": question}, nil
}

// stopAtOnce makes the operator stop as soon as it runs.
func (b *bench) stopAtOnce() { b.run = func(context.Context) error { return nil } }

// load stands for the reading of configurations.
func load(files []string, _ *actions.Registry, beside ...func(*dsl.Operator)) (*dsl.Operator, error) {
	switch files[0] {
	case "foo.yaml":
		op := dsl.New("foo")
		op.Scope = dsl.Scope{Namespaces: []string{"from-file"}, NamespaceSelector: "from=file"}
		op.Settings.GracePeriod = 7e9
		op.Settings.LeaderElection.Mode = dsl.LeaderNone
		op.Resource("foos.v1.example.com", func(r *dsl.Resource) {
			r.OnCreate("first", nothing)
			r.OnUpdate("second", nothing)
		})
		for _, add := range beside {
			add(op)
		}
		return op, nil
	case "bad.yaml":
		return nil, source.Faults{
			{File: "bad.yaml", Line: 12, Column: 7, Path: "resources[0].handlers[1].retires", Message: `unknown field (did you mean "retries"?)`},
			{File: "bad.yaml", Line: 14, Column: 3, Message: "no handlers"},
		}
	default:
		return nil, fmt.Errorf("reading %s: %w", files[0], os.ErrNotExist)
	}
}

func nothing(context.Context, *dsl.Request) error { return nil }

var errLost = errors.New("the lease is lost")

// buffer may be written to and read at the same time.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// quiet are arguments for run that take no address.
func quiet(args ...string) []string {
	return slices.Concat([]string{"run", "--config=foo.yaml", "--health-probe-bind-address=0", "--metrics-bind-address=0", "--debug-bind-address=0"}, args)
}

func TestFaultyRegistryIsReported(t *testing.T) {
	registry := actions.NewRegistry()
	registry.Func("shop.Order", nil)
	var out, complaint bytes.Buffer
	code := Run(t.Context(), []string{"version"}, Streams{Out: &out, Err: &complaint}, registry)
	if code != exitFailed || !strings.Contains(complaint.String(), `registering function "shop.Order"`) || out.Len() > 0 {
		t.Errorf("code %d, out %q, err %q", code, out.String(), complaint.String())
	}
}
