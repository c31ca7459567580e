// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
)

func TestAGapSaysWhereItIsAndWhoNeedsIt(t *testing.T) {
	right := rbac.Rule{Group: "apps", Resource: "deployments", Verb: "create"}
	by := func(names ...string) (out []rbac.Reason) {
		for _, name := range names {
			out = append(out, rbac.Reason{Who: name, Why: "makes them"})
		}
		return out
	}
	tests := map[string]struct {
		reasons    []rbac.Reason
		namespaces []string
		of         int
		want       string
	}{
		"everywhere":                      {by("handler foos/a"), []string{""}, 1, "create deployments.apps for handler foos/a"},
		"in one namespace":                {by("handler foos/a"), []string{"a"}, 2, "create deployments.apps in namespace a for handler foos/a"},
		"in some":                         {by("handler foos/a"), []string{"a", "b"}, 10, "create deployments.apps in namespace a, b for handler foos/a"},
		"in some of those asked":          {by("handler foos/a"), []string{"a"}, 11, "create deployments.apps in namespace a (10 of 11 were asked for) for handler foos/a"},
		"for the engine, with the reason": {by(rbac.Engine), []string{""}, 1, "create deployments.apps for engine: makes them"},
		"for several, each once":          {by("a", "b", "a"), []string{""}, 1, "create deployments.apps for a; b"},
		"for many":                        {by("a", "b", "c", "d", "e"), []string{""}, 1, "create deployments.apps for a; b; c; and 2 more"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := gap{Rule: right, namespaces: test.namespaces, of: test.of}
			g.Reasons = test.reasons
			if diff := cmp.Diff(test.want, g.String()+" for "+g.who()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnAnswerNamesTheMissingRight(t *testing.T) {
	foos := schema.GroupResource{Group: "example.com", Resource: "foos"}
	forbidden := func(reason string) error { return apierrors.NewForbidden(foos, "web", errors.New(reason)) }
	tests := map[string]struct {
		err  error
		want string
	}{
		"on a resource":            {forbidden(`User "operator" cannot patch resource "foos" in API group "example.com" in the namespace "default"`), "patch foos.example.com"},
		"on a subresource":         {forbidden(`User "operator" cannot patch resource "foos/status" in API group "example.com"`), "patch foos.example.com/status"},
		"in the core group":        {forbidden(`User "operator" cannot list resource "pods" in API group "" at the cluster scope`), "list pods"},
		"within another error":     {fmt.Errorf("creating child: %w", forbidden(`User "a" cannot create resource "pods" in API group ""`)), "create pods"},
		"not when a quota is full": {forbidden("exceeded quota: pods"), ""},
		"not of a conflict":        {apierrors.NewConflict(foos, "web", errors.New(`cannot patch resource "foos" in API group "example.com"`)), ""},
		"not when there is none":   {nil, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if refusal := refused(test.err); refusal != nil {
				got = refusal.rights[0].String()
			}
			if got != test.want {
				t.Errorf("the right is %q, want %q", got, test.want)
			}
		})
	}
}

func TestGroupsOfAnAccount(t *testing.T) {
	tests := map[string]struct {
		account string
		want    []string
	}{
		"a service account has those of its namespace": {"system:serviceaccount:team-a:operator", []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:team-a"}},
		"a person has none of them":                    {"ann", []string{"system:authenticated"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, groupsOf(test.account)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
