// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
)

// TestRun goes the whole way, with configurations as they are.
func TestRun(t *testing.T) {
	registry := actions.NewRegistry()
	registry.Action(actions.Action{
		Name:   "note",
		Doc:    "Note something.",
		Config: func() any { return new(string) },
		Build:  func(actions.Build, any) (actions.Built, error) { return actions.Built{Func: nothing}, nil },
	})
	tests := map[string]struct {
		args        []string
		env         []string
		code        int
		out, errors string
	}{
		"a configuration is validated": {
			args: []string{"validate", "--config", "testdata/operator.yaml"},
			out:  "operator foo: 1 resource, 2 handlers: ok\n",
		},
		"its place may come from the environment": {
			args: []string{"validate"}, env: []string{"HANDWERK_CONFIG=testdata/operator.yaml"},
			out: "operator foo: 1 resource, 2 handlers: ok\n",
		},
		"a fault is reported with its place": {
			args: []string{"validate", "--config", "testdata/faulty.yaml"}, code: 1,
			errors: "testdata/faulty.yaml:11:9: resources[0].handlers[0].retires: unknown field",
		},
		"run refuses a fault too": {
			args: []string{"run", "--config", "testdata/faulty.yaml"}, code: 1,
			errors: "error: the configuration has 1 fault\n",
		},
		"run reaches for the API server": {
			args: []string{"run", "--config", "testdata/operator.yaml", "--kubeconfig", "/nowhere/kubeconfig"}, code: 1,
			errors: "error: reading kubeconfig: stat /nowhere/kubeconfig: no such file or directory\n",
		},
		"the schema knows the actions of the registry": {
			args: []string{"schema"}, out: "Note something.",
		},
		"so does the schema of a part": {
			args: []string{"schema", "--part"}, out: "Note something.",
		},
		"cases have a schema of their own": {
			args: []string{"schema", "--cases"}, out: "cases.v1alpha1.json",
		},
		"one schema is printed at a time": {
			args: []string{"schema", "--cases", "--part"}, code: 2, errors: "--part and --cases are two forms: give one",
		},
		"a part is explained": {
			args: []string{"explain", "parameters", "--part"}, out: "FIELD:      parameters <map of text>",
		},
		"one form is explained at a time": {
			args: []string{"explain", "--cases", "--part"}, code: 2, errors: "--part and --cases are two forms: give one",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out, errors bytes.Buffer
			code := cmd.Run(t.Context(), test.args, cmd.Streams{Out: &out, Err: &errors, Env: test.env}, registry)
			if code != test.code {
				t.Errorf("exit code: got %d, want %d", code, test.code)
			}
			for _, c := range []struct{ what, got, want string }{
				{"stdout", out.String(), test.out}, {"stderr", errors.String(), test.errors},
			} {
				if !strings.Contains(c.got, c.want) || (c.got == "") != (c.want == "") {
					t.Errorf("%s: got %q, want %q in it", c.what, c.got, c.want)
				}
			}
		})
	}
}

func TestRunTakesWhatIsDeclaredInGo(t *testing.T) {
	var out, errors bytes.Buffer
	streams := cmd.Streams{Out: &out, Err: &errors}
	code := cmd.Run(t.Context(), []string{"validate"}, streams, actions.NewRegistry(), func(op *dsl.Operator) {
		op.Name = "bar"
		op.Resource("bars.v1.example.com", func(r *dsl.Resource) { r.OnReconcile("only", nothing) })
	})
	if want := "operator bar: 1 resource, 1 handler: ok\n"; code != 0 || out.String() != want {
		t.Errorf("got %d with %q and %q, want 0 with %q", code, out.String(), errors.String(), want)
	}
}

func nothing(context.Context, *dsl.Request) error { return nil }
