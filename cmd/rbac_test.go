// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
	authorization "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
	"github.com/handwerk-dev/handwerk/samples/functions"
)

// standard is a bench that reads configurations with the stock actions.
func standard(t *testing.T, env ...string) *bench {
	t.Helper()
	b := newBench(t, env...)
	b.load, b.registry = config.Load, functions.Registry()
	return b
}

// TestRolesOfTheSamples compares the roles of every sample with a file.
func TestRolesOfTheSamples(t *testing.T) {
	files, err := filepath.Glob("../samples/*/operator.yaml")
	if err != nil || len(files) < 8 {
		t.Fatalf("found %d samples (%v)", len(files), err)
	}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		t.Run(name, func(t *testing.T) {
			golden(t, "rbac/sample-"+name+".golden", said(t, standard(t), "rbac --config "+file))
		})
	}
}

func TestRBACCommand(t *testing.T) {
	for name, args := range map[string]string{
		"help":            "rbac --help",
		"without-config":  "rbac",
		"in-namespaces":   "rbac --config ../samples/foo/operator.yaml -n team-b,team-a --leader-elect=life --service-account team-a/foo --minimal",
		"by-labels":       "rbac --config testdata/rbac/labels.yaml --minimal",
		"json":            "rbac --config ../samples/cleanup/operator.yaml -n team-a -o json",
		"helm":            "rbac --config ../samples/foo/operator.yaml -o helm",
		"helm-by-flags":   "rbac --config testdata/rbac/tenant.yaml -o helm --metrics-secure=false --install-crds --minimal",
		"summary":         "rbac --config ../samples/tenant/operator.yaml --summary",
		"summary-secrets": "rbac --config ../samples/secret-copier/operator.yaml --summary",
		"summary-none":    "rbac --config ../samples/node-labeller/operator.yaml --summary",
		"summary-usual":   "rbac --config ../samples/foo-yaml/operator.yaml --summary",
		"summary-check":   "rbac --config foo.yaml --summary --check",
		"summary-output":  "rbac --config foo.yaml --summary -o json",
		"helm-undeclared": "rbac --config testdata/operator.yaml -o helm --minimal",
		"helm-account":    "rbac --config foo.yaml -o helm --service-account team-a/foo",
		"helm-namespace":  "rbac --config foo.yaml -o helm -n team-a",
		"helm-check":      "rbac --config foo.yaml -o helm --check",
		"bad-account":     "rbac --config foo.yaml --service-account foo",
		// The rights of this handler are not declared.
		"summary-undeclared": "rbac --config testdata/operator.yaml --summary",
		"undeclared":         "rbac --config testdata/operator.yaml --minimal",
		"with-faults":        "rbac --config testdata/crd/faulty.yaml",
		// Roles and bindings are children: whoever writes them needs what they give away.
		"roles":               "rbac --config testdata/rbac/roles.yaml --minimal",
		"roles-in-namespaces": "rbac --config testdata/rbac/roles.yaml --minimal -n team-b,team-a",
	} {
		t.Run(name, func(t *testing.T) {
			b := standard(t)
			if strings.HasSuffix(name, "undeclared") || name == "with-faults" {
				b.registry = noting()
			}
			golden(t, "rbac/"+name+".golden", said(t, b, args))
		})
	}
}

// TestRolesAreTheSameInBothFormats holds that what is written by hand reads back as the objects.
func TestRolesAreTheSameInBothFormats(t *testing.T) {
	const args = "rbac --config ../samples/webapp/operator.yaml -n team-a --leader-elect"
	text, object := standard(t), standard(t)
	text.execute(t.Context(), strings.Fields(args))
	object.execute(t.Context(), strings.Fields(args+" -o json"))
	var list struct{ Items []any }
	if err := json.Unmarshal([]byte(object.out.String()), &list); err != nil {
		t.Fatal(err)
	}
	var documents []any
	for decoder := yaml.NewDecoder(strings.NewReader(text.out.String())); ; {
		var document map[string]any
		if decoder.Decode(&document) != nil {
			break
		}
		documents = append(documents, document)
	}
	if diff := cmp.Diff(list.Items, documents); diff != "" || len(documents) != 6 {
		t.Errorf("%d documents (-json +yaml):\n%s", len(documents), diff)
	}
}

func TestCheckOfAnAccount(t *testing.T) {
	all := func(authorization.ResourceAttributes) bool { return true }
	tests := map[string]struct {
		args    string
		allowed func(authorization.ResourceAttributes) bool
		err     error
		account string
	}{
		"check-all": {allowed: all},
		"check-missing": {allowed: func(a authorization.ResourceAttributes) bool {
			return a.Resource != "deployments" || a.Verb != "create"
		}},
		"check-optional": {
			args: " --service-account team-a/foo", account: "system:serviceaccount:team-a:foo",
			allowed: func(a authorization.ResourceAttributes) bool { return a.Subresource != "finalizers" },
		},
		"check-json":   {args: " -o json", allowed: func(a authorization.ResourceAttributes) bool { return a.Resource != "foos" }},
		"check-denied": {allowed: all, err: errors.New("subjectaccessreviews is forbidden")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := standard(t)
			b.lookup = func(_ context.Context, op *dsl.Operator, c *rest.Config) (rbac.Lookup, error) {
				if c.Host != "https://api.example:6443" {
					t.Errorf("asked %q", c.Host)
				}
				return rbac.Guess(op), nil
			}
			b.reviewer = func(_ *rest.Config, account string) (rbac.Reviewer, error) {
				if account != test.account {
					t.Errorf("asked about the account %q, want %q", account, test.account)
				}
				return func(_ context.Context, about authorization.ResourceAttributes) (bool, error) {
					return test.allowed(about), test.err
				}, nil
			}
			golden(t, "rbac/"+name+".golden", said(t, b, "rbac --config ../samples/foo/operator.yaml --check"+test.args))
		})
	}
}

// TestValuesHaveNoWildcards holds that nothing that a sample needs is all verbs, resources or groups.
func TestValuesHaveNoWildcards(t *testing.T) {
	files, err := filepath.Glob("../samples/*/operator.yaml")
	if err != nil || len(files) < 8 {
		t.Fatalf("found %d samples (%v)", len(files), err)
	}
	for _, file := range files {
		b := standard(t)
		if code := b.execute(t.Context(), []string{"rbac", "--config", file, "-o", "helm"}); code != exitOK {
			t.Fatalf("%s: %s", file, b.err.String())
		}
		values, err := documents(b.out.String())
		if err != nil || len(values) != 1 || at(values[0], "cleanup", "rbac") == nil {
			t.Errorf("%s: %d documents (%v)", file, len(values), err)
		}
		if strings.Contains(fmt.Sprint(values), "*") {
			t.Errorf("%s: there is a wildcard in %v", file, values)
		}
	}
}

// TestClusterDecidesWhereItIsAsked: a resource whose name does not show that it has no namespaces.
func TestClusterDecidesWhereItIsAsked(t *testing.T) {
	kinds := func(args string) (out []string) {
		b := standard(t)
		b.lookup = func(context.Context, *dsl.Operator, *rest.Config) (rbac.Lookup, error) {
			return func(name dsl.ResourceName, _ rbac.Kind) rbac.Served {
				return rbac.Served{Resource: name.Resource, Namespaced: name.Resource != "foos"}
			}, nil
		}
		b.execute(t.Context(), strings.Fields("rbac --config ../samples/foobar/operator.yaml -n a --minimal -o json"+args))
		var list struct {
			Items []struct {
				Kind  string
				Rules []struct{ Resources []string }
			}
		}
		if err := json.Unmarshal([]byte(b.out.String()), &list); err != nil {
			t.Fatalf("%v: %s", err, b.err.String())
		}
		for _, item := range list.Items {
			if slices.ContainsFunc(item.Rules, func(r struct{ Resources []string }) bool { return slices.Contains(r.Resources, "foos") }) {
				out = append(out, item.Kind)
			}
		}
		return out
	}
	if got := fmt.Sprint(kinds(""), kinds(" --cluster")); got != "[Role] [ClusterRole]" {
		t.Errorf("foos are in %s", got)
	}
}
