// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
	"github.com/handwerk-dev/handwerk/engine/operate/cleanup"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestCleanupAsks holds that nothing is changed without a yes.
func TestCleanupAsks(t *testing.T) {
	tests := map[string]struct {
		yes, person bool
		answer      string
		want        string
	}{
		"--yes":                 {yes: true},
		"a person says yes":     {person: true, answer: "y\n"},
		"a person says no":      {person: true, answer: "n\n", want: "nothing was changed"},
		"a person says nothing": {person: true, answer: "\n", want: "nothing was changed"},
		"the input ends":        {person: true, want: "nothing was changed"},
		"no person is there":    {answer: "y\n", want: "without a terminal, nothing is changed unless --yes is given"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := &program{Streams: Streams{In: strings.NewReader(tt.answer)}, parts: parts{asks: func(io.Reader) bool { return tt.person }}}
			got := ""
			if err := p.agreed(tt.yes, io.Discard); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestNothingStopsBeforeTheAnswer holds that --stop scales the Deployment after a yes, and after nothing else.
func TestNothingStopsBeforeTheAnswer(t *testing.T) {
	tests := map[string]struct {
		args     string
		person   bool
		answer   string
		replicas int64
		code     int
		says     string
	}{
		"a person says no":           {person: true, answer: "n\n", replicas: 2, code: exitFailed, says: "nothing was changed"},
		"no person is there":         {replicas: 2, code: exitFailed, says: "without a terminal, nothing is changed unless --yes is given"},
		"a look":                     {args: " --dry-run", replicas: 2, says: "Deployment handwerk-system/handwerk-foo is scaled to zero first"},
		"a person says yes":          {person: true, answer: "y\n", says: "Deployment handwerk-system/handwerk-foo is scaled to zero first"},
		"a person who was not asked": {args: " --yes", says: "cleaned 0 of 0"},
		"whoever":                    {args: " --yes", says: "looking in the cluster at https://api.example:6443\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				c.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: handwerk-system}}`)
				c.Create(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: handwerk-foo, namespace: handwerk-system}, spec: {replicas: 2}}`)
				b := standard(t)
				b.In, b.asks = strings.NewReader(tt.answer), func(io.Reader) bool { return tt.person }
				b.cleaner = func(ctx context.Context, op *dsl.Operator, set cleanup.Settings) (*cleanup.Cleaner, error) {
					set.Config = c.Config()
					return cleanup.New(ctx, op, set)
				}
				code := b.execute(context.WithoutCancel(t.Context()), strings.Fields("cleanup --config ../samples/foo/operator.yaml --stop"+tt.args))
				replicas, _, _ := unstructured.NestedInt64(c.Get("deployments.v1.apps", "handwerk-system", "handwerk-foo").Object, "spec", "replicas")
				if said := b.out.String() + b.err.String(); code != tt.code || replicas != tt.replicas || !strings.Contains(said, tt.says) {
					t.Errorf("exit code %d, %d replicas, want %d and %d with %q; it said:\n%s", code, replicas, tt.code, tt.replicas, tt.says, said)
				}
			})
		})
	}
}

// TestWhatCleanupSays holds what a person reads before they are asked.
func TestWhatCleanupSays(t *testing.T) {
	var many []cleanup.Found
	for i := range 7 {
		many = append(many, cleanup.Found{Resource: discovery.Resource{Kind: "Foo"}, Namespace: "default", Name: fmt.Sprint("web-", i)})
	}
	found := cleanup.Findings{
		Objects: many, Children: []cleanup.Found{{Resource: discovery.Resource{Kind: "Namespace"}, Name: "team"}},
		Own: []cleanup.Found{{Resource: discovery.Resource{Kind: "Lease"}, Namespace: "system", Name: "foo-leader"}},
	}
	found.Within, found.Beside, found.Elsewhere = []string{"team-a", "team-b"}, []string{"shop"}, []string{"ops"}
	found.Admission = []string{"default"}
	var out strings.Builder
	tellFindings(&out, &cleanupFlags{children: deleteChildren, namespace: "system"}, &dsl.Operator{Name: "foo"}, found)
	want := `looked in namespaces team-a, team-b alone: the account may not list all kinds elsewhere
looked in the namespaces of this operator's scope alone: it is deployed in namespace shop, too
operator foo has a Lease in namespace ops, and --namespace is system: what it keeps in ops stays
operator foo has policies or webhooks of its deployment in namespace default, and --namespace is system: they stay
operator foo has left:
  objects with its marks (7): they stay, without these
    Foo default/web-0
    Foo default/web-1
    Foo default/web-2
    Foo default/web-3
    Foo default/web-4
    and 2 more
  children (1): they are deleted
    Namespace team
  objects of its own (1): they are deleted
    Lease system/foo-leader
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCleanupSaysWhereItDidNotLook holds that a person reads which objects an account did not look at that may not list Leases.
func TestCleanupSaysWhereItDidNotLook(t *testing.T) {
	for want, found := range map[string]cleanup.Findings{
		"looked in the namespaces of this operator's scope alone: the account may not list Leases, which say whether it is deployed in another namespace, too\n": {Alone: true},
		"looked in namespaces team-a alone: the account may not list all kinds elsewhere\n":                                                                      {Alone: true, Within: []string{"team-a"}},
	} {
		var out strings.Builder
		tellFindings(&out, &cleanupFlags{}, &dsl.Operator{Name: "foo"}, found)
		if diff := cmp.Diff(want+"operator foo has left nothing that can be seen\n", out.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
