// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
)

func TestParseNeed(t *testing.T) {
	tests := map[string]struct {
		verbs, resource string
		want            dsl.Need
		text, wrong     string
	}{
		"one verb":              {verbs: "get", resource: "pods", want: dsl.Need{Verbs: []string{"get"}, Resource: dsl.ResourceName{Resource: "pods"}}, text: "pods"},
		"verbs with spaces":     {verbs: "get, create", resource: "pods", want: dsl.Need{Verbs: []string{"get", "create"}, Resource: dsl.ResourceName{Resource: "pods"}}, text: "pods"},
		"a subresource":         {verbs: "update", resource: "deployments.v1.apps/scale", want: dsl.Need{Verbs: []string{"update"}, Resource: dsl.ResourceName{Resource: "deployments", Version: "v1", Group: "apps"}, Subresource: "scale"}, text: "deployments.v1.apps/scale"},
		"the handler's own":     {verbs: "patch", resource: "self", want: dsl.Need{Verbs: []string{"patch"}}, text: "self"},
		"its status":            {verbs: "patch", resource: "self/status", want: dsl.Need{Verbs: []string{"patch"}, Subresource: "status"}, text: "self/status"},
		"a verb of an own API":  {verbs: "frobnicate", resource: "pods", want: dsl.Need{Verbs: []string{"frobnicate"}, Resource: dsl.ResourceName{Resource: "pods"}}, text: "pods"},
		"a mistyped verb":       {verbs: "get,wacth", resource: "pods", wrong: `reading need of pods: unknown verb "wacth" (did you mean "watch"?)`},
		"no verb":               {verbs: "", resource: "pods", wrong: `"" is no verb`},
		"a comma too many":      {verbs: "get,", resource: "pods", wrong: `"" is no verb`},
		"a kind for a resource": {verbs: "get", resource: "Widget", wrong: `"Widget" is not the plural name`},
		"an empty subresource":  {verbs: "get", resource: "pods/", wrong: `"" is no subresource`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := dsl.ParseNeed(test.verbs, test.resource)
			if test.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), test.wrong) {
					t.Errorf("the error is %v, want one with %s", err, test.wrong)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("need (-want +got), error %v:\n%s", err, diff)
			}
			if got.Text() != test.text {
				t.Errorf("the text is %q, want %q", got.Text(), test.text)
			}
		})
	}
}

func TestNeedsThatAreSaidInOtherWaysHaveATextToo(t *testing.T) {
	for want, need := range map[string]dsl.Need{
		"Pod of v1":    {Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}},
		"children.db":  {Child: "db"},
		"related.pods": {Relation: "pods"},
	} {
		if got := need.Text(); got != want {
			t.Errorf("the text is %q, want %q", got, want)
		}
	}
}

func TestFaultyNeedsAreFaultsOfTheOperator(t *testing.T) {
	op := dsl.New("op")
	op.Resource("foos.v1.example.com", func(r *dsl.Resource) {
		nothing := func(context.Context, *dsl.Request) error { return nil }
		r.OnCreate("typo", nothing, dsl.Needs("gett", "pods"))
		r.OnCreate("none", nothing, dsl.WithNeeds(dsl.Need{}))
		r.OnCreate("verb", nothing, dsl.WithNeeds(dsl.Need{Verbs: []string{"lits"}, Subresource: "status"}))
	})
	err := op.Validate()
	if err == nil {
		t.Fatal("it is taken for good")
	}
	for _, want := range []string{
		`handler typo: needs: reading need of pods: unknown verb "gett" (did you mean "get"?)`,
		`handler none: needs[0]: the need of self has no verbs`,
		`handler verb: needs[0].verbs[0]: unknown verb "lits" (did you mean "list"?)`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the faults are\n%v\nwant among them\n%s", err, want)
		}
	}
}
