// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// TestWhoeverGivesRightsAwayNeedsThem holds which rights a role or a binding takes besides those on itself, and what a binding
// waits for.
func TestWhoeverGivesRightsAwayNeedsThem(t *testing.T) {
	const (
		object  = "apiVersion: rbac.authorization.k8s.io/v1, kind: "
		mine    = "metadata: {name: '${self.metadata.name}'}"
		rules   = "rules: [{apiGroups: [apps], resources: [deployments, deployments/status], verbs: [get, list]}]"
		unheld  = "rules: [{apiGroups: ['${self.spec.group}'], resources: [things], verbs: [get]}]"
		ofMine  = "roleRef: {kind: Role, name: '${self.metadata.name}'}"
		granted = "get,list deployments.apps of Role: child a grants it|get,list deployments.apps/status of Role: child a grants it"
		anyRole = "bind roles.rbac.authorization.k8s.io of RoleBinding: child b binds any role, as its roleRef.name is an expression"
	)
	held := "a: {" + object + "Role, " + mine + ", " + rules + "}"
	tests := map[string]struct {
		config string
		want   string // the needs
		waits  string // what b needs
	}{
		"a role whose rules are plain takes them": {config: held, want: granted},
		"a role without rules takes none":         {config: "a: {" + object + "Role, metadata: {name: x}}"},
		"a name that is an expression counts as all names": {
			config: "a: {" + object + "Role, metadata: {name: x}, rules: [{apiGroups: [''], resources: [pods], resourceNames: [p, '${self.spec.pod}'], verbs: [get]}]}",
			want:   "get pods of Role: child a grants it",
		},
		"names that are plain stay, whatever the verb": {
			config: "a: {" + object + "Role, metadata: {name: x}, rules: [{apiGroups: [''], resources: [pods], resourceNames: [p], verbs: [create, list]}]}",
			want:   "create,list pods p of Role: child a grants it",
		},
		"rights in the one namespace of the role": {
			config: "a: {" + object + "Role, metadata: {name: x, namespace: team}, rules: [{apiGroups: [''], resources: [pods], verbs: [odd Verb]}]}",
			want:   "odd Verb pods of Role in team: child a grants it",
		},
		"a rule without verbs is refused anyhow": {config: "a: {" + object + "Role, metadata: {name: x}, rules: [{apiGroups: [''], resources: [pods]}]}"},
		"a verb that is an expression takes escalate on the role": {
			config: "a: {" + object + "ClusterRole, metadata: {name: x}, rules: [{apiGroups: [''], resources: [pods], verbs: ['${self.spec.verb}']}]}",
			want:   "escalate clusterroles.rbac.authorization.k8s.io x of ClusterRole: child a has rules that are expressions",
		},
		"a key that is an expression, too": {
			config: "a: {" + object + "Role, metadata: {name: x}, '${self.spec.key}': []}",
			want:   "escalate roles.rbac.authorization.k8s.io x of Role: child a has rules that are expressions",
		},
		"on all roles where the name is one as well": {
			config: "a: {" + object + "Role, " + mine + ", rules: '${self.spec.rules}'}",
			want:   "escalate roles.rbac.authorization.k8s.io of Role: child a has rules that are expressions; any role, as its metadata.name is an expression",
		},
		"a binding of a plain role takes bind on that role": {
			config: "b: {" + object + "RoleBinding, " + mine + ", roleRef: {kind: ClusterRole, name: view}}",
			want:   "bind clusterroles.rbac.authorization.k8s.io view of RoleBinding: child b binds it",
		},
		"a binding whose roleRef is an expression may bind any": {
			config: "b: {" + object + "ClusterRoleBinding, " + mine + ", roleRef: '${self.spec.ref}'}",
			want: "bind clusterroles.rbac.authorization.k8s.io of ClusterRoleBinding: child b binds any role, as its roleRef.name is an expression|" +
				"bind roles.rbac.authorization.k8s.io of ClusterRoleBinding: child b binds any role, as its roleRef.name is an expression",
		},
		"a binding without a roleRef is refused anyhow": {config: "b: {" + object + "RoleBinding, " + mine + "}"},
		"a binding of a child with the same expression needs that child, and no right": {
			config: held + ", b: {" + object + "RoleBinding, " + mine + ", " + ofMine + "}", want: granted, waits: "a",
		},
		"and so for each element": {
			config: "a: {forEach: [p, q], template: {" + object + "Role, metadata: {name: '${item}'}, " + rules + "}}, " +
				"b: {forEach: [p, q], template: {" + object + "RoleBinding, metadata: {name: '${item}'}, roleRef: {kind: Role, name: '${item}'}}}",
			want: granted, waits: "a",
		},
		"but not for others": {
			config: "a: {forEach: [p, q], template: {" + object + "Role, metadata: {name: '${item}'}, " + rules + "}}, " +
				"b: {forEach: [r], template: {" + object + "RoleBinding, metadata: {name: '${item}'}, roleRef: {kind: Role, name: '${item}'}}}",
			want: anyRole + "|" + granted,
		},
		"a binding in another namespace may bind any": {
			config: held + ", b: {" + object + "RoleBinding, metadata: {name: x, namespace: '${self.spec.team}'}, " + ofMine + "}", want: anyRole + "|" + granted,
		},
		"a binding that is there without the role may bind any": {
			config: "a: {includeWhen: self.spec.on, template: {" + object + "Role, " + mine + ", " + rules + "}}, b: {" + object + "RoleBinding, " + mine + ", " + ofMine + "}",
			want:   anyRole + "|" + granted,
		},
		"a binding of a role that the operator does not hold may bind any": {
			config: "a: {" + object + "Role, " + mine + ", " + unheld + "}, b: {" + object + "RoleBinding, " + mine + ", " + ofMine + "}",
			want: anyRole + "|" +
				"escalate roles.rbac.authorization.k8s.io of Role: child a has rules that are expressions; any role, as its metadata.name is an expression",
		},
		"a binding that the role needs may bind any": {
			config: "a: {" + object + "Role, metadata: {name: '${self.metadata.name}', labels: {b: '${children.b.metadata.uid}'}}, " + rules + "}, " +
				"b: {" + object + "RoleBinding, " + mine + ", " + ofMine + "}",
			want: anyRole + "|" + granted,
		},
		"a binding of a child by its name takes no right": {
			config: held + ", b: {" + object + "RoleBinding, " + mine + ", roleRef: {kind: Role, name: '${children.a.metadata.name}'}}", want: granted, waits: "a",
		},
		"a binding of a child by its name, which is plain, takes bind on it": {
			config: "a: {" + object + "ClusterRole, metadata: {name: x}, " + unheld + "}, b: {" + object + "RoleBinding, " + mine + ", roleRef: {kind: ClusterRole, name: '${children.a.metadata.name}'}}",
			want: "bind clusterroles.rbac.authorization.k8s.io x of RoleBinding: child b binds it|" +
				"escalate clusterroles.rbac.authorization.k8s.io x of ClusterRole: child a has rules that are expressions",
			waits: "a",
		},
		"other kinds of the name take nothing": {config: "a: {apiVersion: example.com/v1, kind: Role, metadata: {name: x}, rules: []}"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			built, err := build(t, "{"+test.config+"}", actions.Build{})
			if err != nil {
				t.Fatal(err)
			}
			op := dsl.New("x")
			op.Resource("foos.v1.example.com", func(r *dsl.Resource) {
				r.OwnsKind(built.Owns...)
				r.Add(dsl.Handler{ID: "h", Causes: []dsl.Cause{dsl.Create}, Func: built.Func, Known: dsl.Known{Brings: built.Brings}, NoOld: built.NoOld, Needs: built.Needs})
			})
			if err := op.Validate(); err != nil {
				t.Error(err)
			}
			var got []string
			for _, n := range built.Needs {
				if !n.For.Empty() {
					got = append(got, needed(n))
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, strings.Join(got, "|")); diff != "" {
				t.Errorf("needs (-want +got):\n%s", diff)
			}
			for _, c := range built.Children {
				if waits := strings.Join(c.Needs, ","); c.Name == "b" && waits != test.waits {
					t.Errorf("the binding needs %q, want %q", waits, test.waits)
				}
			}
		})
	}
}

// TestABindingInAPartThatIsUsedWithANameTakesNoRight has a role that the binding names as the part does.
func TestABindingInAPartThatIsUsedWithANameTakesNoRight(t *testing.T) {
	var none *expr.Lets
	built, err := build(t, `{
		a: {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: "${self.metadata.name}"}, rules: [{apiGroups: [apps], resources: [deployments], verbs: [get]}]},
		b: {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x}, roleRef: {kind: Role, name: "${children.a.metadata.name}"}}}`,
		actions.Build{Lets: none.WithChildren(map[string]string{"a": "front_a", "b": "front_b"})})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range built.Needs {
		if !n.For.Empty() {
			got = append(got, needed(n))
		}
	}
	if diff := cmp.Diff([]string{"get deployments.apps of Role: child front_a grants it"}, got); diff != "" {
		t.Errorf("needs (-want +got):\n%s", diff)
	}
}

// needed is a need that comes of writing an object, as a text.
func needed(n dsl.Need) string {
	out := strings.Join(append([]string{strings.Join(n.Verbs, ","), n.Text()}, n.Names...), " ") + " of " + n.For.Kind
	if n.Namespace != "" {
		out += " in " + n.Namespace
	}
	return fmt.Sprintf("%s: %s", out, n.Why)
}
