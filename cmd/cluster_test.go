// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/source"
	"github.com/handwerk-dev/handwerk/engine/cluster/crd"
	"github.com/handwerk-dev/handwerk/engine/operate/preflight"
)

func TestValidateAgainstACluster(t *testing.T) {
	second := source.Fault{File: "foo.yaml", Line: 14, Column: 20, Path: "a", Message: "second"}
	first := source.Fault{File: "foo.yaml", Line: 14, Column: 7, Path: "a", Message: "first", Excerpt: "  when: slef\n      ^"}
	found := map[string]struct {
		findings preflight.Findings
		err      error
	}{
		"cluster-fits":     {},
		"cluster-warnings": {findings: preflight.Findings{Warnings: []string{"resource bars: not served by the API server"}}},
		"cluster-faults": {findings: preflight.Findings{
			Faults: []error{second, first, second, errors.New("placeless")}, Warnings: []string{"one", "two"},
		}},
		"cluster-outdated": {findings: preflight.Findings{Outdated: []error{first}, Notes: []error{second}}},
		"cluster-away":     {err: errors.New("asking the API server: connection refused")},
	}
	for name, test := range found {
		for suffix, args := range map[string]string{"": "", "-json": " -o json"} {
			t.Run(name+suffix, func(t *testing.T) {
				b := newBench(t)
				host := ""
				b.check = func(_ context.Context, _ *dsl.Operator, _ dsl.Knowledge, c *rest.Config) (preflight.Findings, error) {
					host = c.Host
					return test.findings, test.err
				}
				golden(t, "validate-"+name+suffix+".golden", said(t, b, "validate --config foo.yaml --cluster"+args))
				if host != "https://api.example:6443" {
					t.Errorf("asked %q", host)
				}
			})
		}
	}
}

// TestWhatTheClusterSaysOfACRDIsAFaultOrAWarning holds that a flag accepts a schema that breaks, also when warnings are faults.
func TestWhatTheClusterSaysOfACRDIsAFaultOrAWarning(t *testing.T) {
	breaks := &crd.BreakingError{Changes: []string{"v1 spec.a: the field is dropped"}, Stored: "1 of 1 stored objects does not fit", Unfit: true}
	for name, tt := range map[string]struct {
		args  string
		trial crd.Trial
		err   error
		code  int
		want  string
	}{
		"rejected":                 {"", crd.Trial{Rejected: []error{errors.New("no")}}, nil, exitFailed, "configuration: no\n"},
		"not tried":                {"", crd.Trial{Untried: []error{errors.New("no rights")}}, nil, exitOK, "warning: no rights\n"},
		"not tried, strictly":      {"--strict", crd.Trial{Untried: []error{errors.New("no rights")}}, nil, exitFailed, "no rights\n"},
		"that it breaks":           {"", crd.Trial{Breaks: breaks}, nil, exitFailed, "(1 of 1 stored objects does not fit): " + breaks.Cure() + "\n"},
		"that it breaks, accepted": {"--allow-breaking-schema --strict", crd.Trial{Breaks: breaks}, nil, exitOK, "warning: configuration: the schema breaks what the cluster has: v1 spec.a: the field is dropped (1 of 1 stored objects does not fit)\n"},
		"nothing":                  {"", crd.Trial{}, errors.New("away"), exitFailed, "checking against the cluster: trying CRD of foos.v1.example.com: away"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.check = func(context.Context, *dsl.Operator, dsl.Knowledge, *rest.Config) (preflight.Findings, error) {
				return preflight.Findings{}, nil
			}
			b.try = func(context.Context, *dsl.Operator, *rest.Config, *dsl.Resource) (crd.Trial, error) {
				return tt.trial, tt.err
			}
			code := b.execute(t.Context(), strings.Fields("validate --config foo.yaml --cluster "+tt.args))
			if code != tt.code || !strings.Contains(b.err.String(), tt.want) {
				t.Errorf("exit code %d, want %d and %q: %s", code, tt.code, tt.want, b.err.String())
			}
		})
	}
}

func TestAFaultyConfigurationIsNotHeldAgainstTheCluster(t *testing.T) {
	b := newBench(t)
	b.check = func(context.Context, *dsl.Operator, dsl.Knowledge, *rest.Config) (preflight.Findings, error) {
		t.Error("the cluster was asked")
		return preflight.Findings{}, nil
	}
	if code := b.execute(t.Context(), strings.Fields("validate --config bad.yaml --cluster")); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
}

func TestRunInstallsCRDsBeforeItWorks(t *testing.T) {
	tests := map[string]struct {
		args    []string
		err     error
		signal  bool
		want    string
		code    int
		message string
	}{
		"when asked to":                     {args: []string{"--install-crds"}, want: "install run"},
		"over others' hands":                {args: []string{"--install-crds=takeover"}, want: "install over run"},
		"not when asked not to":             {args: []string{"--install-crds=false"}, want: "run"},
		"in no other way":                   {args: []string{"--install-crds=force"}, code: exitUsage, message: "want false, true or takeover"},
		"not otherwise":                     {want: "run"},
		"and not at all without them":       {args: []string{"--install-crds"}, err: errors.New("installing CRD of foos: no"), want: "install", code: exitFailed, message: "error: running operator foo: installing CRD of foos: no\n"},
		"and stops well while it waits":     {args: []string{"--install-crds"}, err: context.Canceled, signal: true, want: "install"},
		"also when the environment asks so": {args: nil, want: "install run"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if name == "also when the environment asks so" {
				b.Env = append(b.Env, "HANDWERK_INSTALL_CRDS=true")
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var did []string
			b.install = func(_ context.Context, op *dsl.Operator, _ *rest.Config, set crd.Settings) error {
				did = append(did, "install")
				if set.TakeOver {
					did = append(did, "over")
				}
				if op.Name != "foo" {
					t.Errorf("installing for %s", op.Name)
				}
				if test.signal {
					cancel()
				}
				return test.err
			}
			b.run = func(context.Context) error { did = append(did, "run"); return nil }
			code := b.execute(ctx, quiet(test.args...))
			if got := strings.Join(did, " "); got != test.want || code != test.code || !strings.Contains(b.err.String(), test.message) {
				t.Errorf("did %q with exit code %d, want %q with %d: %s", got, code, test.want, test.code, b.err.String())
			}
		})
	}
}
