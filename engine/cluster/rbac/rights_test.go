// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/shape"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
)

func nothing(context.Context, *dsl.Request) error { return nil }

// foos is an operator of one resource.
func foos(define func(*dsl.Resource)) *dsl.Operator {
	op := dsl.New("foo")
	op.Resource("foos.v1.example.com", define)
	return op
}

// lines are rights as policies, a line each, but for those that every operator needs. What it needs not
// necessarily has a question mark.
func lines(rules []rbac.Rule) []string {
	rules = slices.DeleteFunc(slices.Clone(rules), func(r rbac.Rule) bool {
		tells := r.Optional && strings.Contains(r.Reasons[0].Why, "which handlers fail")
		return r.Resource == "customresourcedefinitions" && r.Optional || r.Resource == "events" || tells || len(r.Reasons) == 1 && strings.Contains(r.Reasons[0].Why, "pauses a namespace")
	})
	var out []string
	for _, role := range rbac.Roles(rules) {
		for _, p := range role.Policies {
			line := strings.Join(p.Verbs, ",") + " " + p.Resource
			if p.Group != "" {
				line += " of " + p.Group
			}
			if len(p.Names) > 0 {
				line += " named " + strings.Join(p.Names, ",")
			}
			if role.Namespace != "" {
				line += " in " + role.Namespace
			}
			if !slices.ContainsFunc(p.Reasons, func(why string) bool { return !strings.Contains(why, "; optional)") }) {
				line += "?"
			}
			out = append(out, line)
		}
	}
	return out
}

// patches is a handler that patches a Node, and keeps a record of that on its object.
func patches(r *dsl.Resource) {
	node := dsl.Need{Verbs: []string{"get", "patch"}, Kind: schema.GroupVersionKind{Version: "v1", Kind: "Node"}, Names: []string{"worker"}}
	r.Add(dsl.Handler{ID: "mark", Causes: []dsl.Cause{dsl.Reconcile}, Func: nothing, Needs: []dsl.Need{node}, Declared: true, Known: dsl.Known{Patches: []string{"mark"}}})
}

func TestAnOperatorNeedsWhatItAndItsHandlersDo(t *testing.T) {
	configMap := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	makesConfigMaps := dsl.WithNeeds(dsl.Need{Verbs: []string{"create"}, Kind: configMap})
	tests := map[string]struct {
		op   *dsl.Operator
		set  rbac.Settings
		want []string
	}{
		"a handler that only looks needs the watch": {
			op:   foos(func(r *dsl.Resource) { r.OnReconcile("look", nothing, dsl.WithNeeds()) }),
			want: []string{"list,watch foos of example.com"},
		},
		"a handler that remembers needs to write the object, and to read it again": {
			op:   foos(func(r *dsl.Resource) { r.OnUpdate("change", nothing) }),
			want: []string{"get,list,watch,patch foos of example.com"},
		},
		"a delete handler needs to keep a finalizer": {
			op:   foos(func(r *dsl.Resource) { r.OnDelete("bye", nothing) }),
			want: []string{"get,list,watch,patch foos of example.com"},
		},
		"a delete handler without a finalizer needs to see whether the object is gone": {
			op:   foos(func(r *dsl.Resource) { r.OnDelete("bye", nothing, dsl.NoFinalizer()) }),
			want: []string{"get,list,watch foos of example.com"},
		},
		"a handler that patches other objects needs to, by name where that is known, and to keep a record": {
			op:   foos(patches),
			want: []string{"get,patch nodes named worker", "get,list,watch,patch foos of example.com"},
		},
		"cache live reads each object": {
			op:   foos(func(r *dsl.Resource) { r.Cache = dsl.CacheLive; r.OnReconcile("look", nothing) }),
			want: []string{"get,list,watch foos of example.com"},
		},
		"a schedule keeps nothing": {
			op:   foos(func(r *dsl.Resource) { r.Schedule(dsl.Timing{Cron: "@daily"}, "census", nothing) }),
			want: []string{"list,watch foos of example.com"},
		},
		"what is set in the status is declared": {
			op:   foos(func(r *dsl.Resource) { r.OnReconcile("status", nothing, dsl.Needs("patch", "self/status")) }),
			want: []string{"get,list,watch foos of example.com", "patch foos/status of example.com"},
		},
		"a status that is no subresource is written with the object": {
			op: foos(func(r *dsl.Resource) { r.OnReconcile("status", nothing, dsl.Needs("patch", "self/status")) }),
			set: rbac.Settings{Lookup: func(name dsl.ResourceName, _ rbac.Kind) rbac.Served {
				return rbac.Served{Resource: name.Resource, Namespaced: true}
			}},
			want: []string{"get,list,watch,patch foos of example.com"},
		},
		"an offered condition is for what comes from CRDs": {
			op: func() *dsl.Operator {
				offered := dsl.WithNeeds(dsl.Need{Verbs: []string{"patch"}, Subresource: "status", Offered: true})
				op := foos(func(r *dsl.Resource) { r.OnReconcile("one", nothing, offered) })
				op.Resource("pods.v1", func(r *dsl.Resource) { r.OnReconcile("one", nothing, offered) })
				return op
			}(),
			want: []string{"list,watch pods", "get,list,watch foos of example.com", "patch foos/status of example.com"},
		},
		"children are watched, and made by who declares it": {
			op: foos(func(r *dsl.Resource) {
				r.Owns("deployments.v1.apps", "services")
				r.OnReconcile("deployment", nothing, dsl.Needs("get, create,patch", "deployments.apps"))
			}),
			want: []string{
				"list,watch services", "get,list,watch,create,patch deployments of apps",
				"list,watch foos of example.com", "update foos/finalizers of example.com?",
			},
		},
		"a kind and its plural are the same": {
			op: foos(func(r *dsl.Resource) {
				r.OwnsKind(configMap)
				r.OnReconcile("one", nothing, dsl.WithNeeds(dsl.Need{Verbs: []string{"create"}, Kind: configMap}), dsl.Needs("get", "configmaps"))
			}),
			want: []string{"get,list,watch,create configmaps", "list,watch foos of example.com"},
		},
		"children that the configuration may have no more are taken away": {
			op: foos(func(r *dsl.Resource) {
				r.Owns("services")
				r.Makes = append(r.Makes, shape.NamedChild{Name: "config", Kind: configMap})
				r.OnReconcile("one", nothing)
			}),
			want: []string{"list,watch,delete services", "list,watch foos of example.com"},
		},
		"named children and relations stand for their resources": {
			op: foos(func(r *dsl.Resource) {
				r.Makes = append(r.Makes, shape.NamedChild{Name: "config", Kind: configMap}, shape.NamedChild{Name: "any"})
				r.Relates(dsl.Relation{Name: "peers", Resource: dsl.ResourceName{Resource: "pods"}})
				r.OnReconcile("one", nothing, dsl.WithNeeds(
					dsl.Need{Verbs: []string{"delete"}, Child: "config"}, dsl.Need{Verbs: []string{"delete"}, Child: "any"},
					dsl.Need{Verbs: []string{"delete"}, Relation: "peers"}, dsl.Need{Verbs: []string{"delete"}, Relation: "none"},
				))
			}),
			want: []string{"delete configmaps", "list,watch,delete pods", "list,watch foos of example.com"},
		},
		"one related object needs its name, in its namespace": {
			op: foos(func(r *dsl.Resource) {
				r.Relates(dsl.Relation{Name: "pull", Resource: dsl.ResourceName{Resource: "secrets"}, Namespace: "platform", Object: "registry"})
				r.Relates(dsl.Relation{Name: "own", Resource: dsl.ResourceName{Resource: "configmaps"}, Object: "settings"})
				r.Relates(dsl.Relation{Name: "node", Resource: dsl.ResourceName{Resource: "nodes"}, Namespace: "platform", Object: "worker"})
				r.OnReconcile("one", nothing, dsl.WithNeeds(dsl.Need{Verbs: []string{"delete", "patch"}, Relation: "pull"}))
			}),
			want: []string{
				"list,watch configmaps named settings", "list,watch nodes named worker", "list,watch foos of example.com",
				"list,watch,patch,delete secrets named registry in platform",
			},
		},
		"a relation to one namespace needs no other one, and none outside the scope": {
			op: func() *dsl.Operator {
				op := foos(func(r *dsl.Resource) {
					r.Relates(dsl.Relation{Name: "in", Resource: dsl.ResourceName{Resource: "pods"}, Namespace: "b"})
					r.Relates(dsl.Relation{Name: "out", Resource: dsl.ResourceName{Resource: "secrets"}, Namespace: "c"})
					r.OnReconcile("one", nothing, dsl.WithNeeds())
				})
				op.Scope.Namespaces = []string{"a", "b"}
				return op
			}(),
			want: []string{"list,watch foos of example.com in a", "list,watch pods in b", "list,watch foos of example.com in b"},
		},
		"names hold for the verbs that Kubernetes allows by name, and need nothing that is allowed for all": {
			op: foos(func(r *dsl.Resource) {
				r.OnReconcile("one", nothing,
					dsl.WithNeeds(dsl.Need{Verbs: []string{"get", "create"}, Resource: dsl.ResourceName{Resource: "secrets"}, Names: []string{"a", "b"}}),
					dsl.WithNeeds(dsl.Need{Verbs: []string{"get"}, Resource: dsl.ResourceName{Resource: "foos", Group: "example.com"}, Names: []string{"x"}}),
					dsl.Needs("get", "self"))
			}),
			want: []string{"create secrets", "get secrets named a", "get secrets named b", "get,list,watch foos of example.com"},
		},
		"in namespaces there are roles for each, and for the cluster what has no namespace": {
			op: func() *dsl.Operator {
				op := foos(func(r *dsl.Resource) {
					r.OnReconcile("one", nothing,
						dsl.Needs("bind", "clusterroles.rbac.authorization.k8s.io"),
						dsl.WithNeeds(dsl.Need{Verbs: []string{"get"}, Resource: dsl.ResourceName{Resource: "configmaps"}, Namespace: "kube-system"}))
				})
				op.Scope.Namespaces = []string{"b", "a", "b"}
				return op
			}(),
			want: []string{
				"bind clusterroles of rbac.authorization.k8s.io", "list,watch foos of example.com in a",
				"list,watch foos of example.com in b", "get configmaps in kube-system",
			},
		},
		"globs are for the whole cluster, whose namespaces are watched": {
			op:   scoped(dsl.Scope{Namespaces: []string{"team-*", "other"}}),
			want: []string{"get,list,watch namespaces", "list,watch foos of example.com"},
		},
		"labels are for the whole cluster, too": {
			op: scoped(dsl.Scope{NamespaceSelector: "tenant"}), want: []string{"get,list,watch namespaces", "list,watch foos of example.com"},
		},
		"names that must have labels are those of roles": {
			op:   scoped(dsl.Scope{Namespaces: []string{"a"}, NamespaceSelector: "tenant"}),
			want: []string{"get,list,watch namespaces", "list,watch foos of example.com in a"},
		},
		"an object without a namespace keeps the record of its children in namespaces": {
			op:  foos(func(r *dsl.Resource) { r.OwnsKind(configMap); r.OnReconcile("one", nothing, makesConfigMaps) }),
			set: rbac.Settings{Lookup: namespacedBut("foos")},
			want: []string{
				"list,watch,create configmaps", "get,list,watch,patch foos of example.com",
			},
		},
		"one whose children have none either keeps no record": {
			op:   foos(func(r *dsl.Resource) { r.OwnsKind(configMap); r.OnReconcile("one", nothing, makesConfigMaps) }),
			set:  rbac.Settings{Lookup: namespacedBut("foos", "configmaps")},
			want: []string{"list,watch,create configmaps", "list,watch foos of example.com"},
		},
		"a lease is named, but for its creation": {
			op:  leading(dsl.LeaderElection{Mode: dsl.LeaderLease}),
			set: rbac.Settings{Namespace: "system"},
			want: []string{
				"list,watch foos of example.com", "get,update configmaps named foo-children in system?", "list,watch configmaps named foo-paused in system?",
				"create leases of coordination.k8s.io in system", "get,watch,update leases of coordination.k8s.io named foo-leader in system",
			},
		},
		"protected metrics take reviews in the whole cluster, wherever it works": {
			op: func() *dsl.Operator {
				op := foos(func(r *dsl.Resource) { r.OnReconcile("one", nothing) })
				op.Scope.Namespaces = []string{"a"}
				return op
			}(),
			set: rbac.Settings{SecureMetrics: true},
			want: []string{
				"create tokenreviews of authentication.k8s.io", "create subjectaccessreviews of authorization.k8s.io",
				"list,watch foos of example.com in a",
			},
		},
		"one that leads in plain namespaces": {
			op: func() *dsl.Operator {
				op := leading(dsl.LeaderElection{Mode: dsl.LeaderLease})
				op.Scope.Namespaces = []string{"a"}
				return op
			}(),
			set: rbac.Settings{Namespace: "system"},
			want: []string{
				"list,watch foos of example.com in a", "get,update configmaps named foo-children in system?", "list,watch configmaps named foo-paused in system?",
				"create leases of coordination.k8s.io in system", "get,watch,update leases of coordination.k8s.io named foo-leader in system",
			},
		},
		"a lock for life is taken away by others, who look for its pod": {
			op:  leading(dsl.LeaderElection{Mode: dsl.LeaderLife, Name: "lock", Namespace: "here"}),
			set: rbac.Settings{Namespace: "system"},
			want: []string{
				"list,watch foos of example.com", "get,update configmaps named foo-children in here?", "list,watch configmaps named foo-paused in here?", "get pods in here",
				"create leases of coordination.k8s.io in here", "get,watch,delete leases of coordination.k8s.io named lock in here",
			},
		},
		"an operator that had other names reads and moves what is under them": {
			op: func() *dsl.Operator {
				op := foos(func(r *dsl.Resource) { r.Owns("secrets.v1"); r.OnReconcile("one", nothing) })
				op.Settings.LeaderElection.Mode, op.Was = dsl.LeaderLease, []string{"old", "foo.example.com"}
				return op
			}(),
			set: rbac.Settings{Namespace: "system"},
			want: []string{
				"get,list,watch,patch secrets", "get,list,watch,patch foos of example.com",
				"create configmaps in system", "get,update configmaps named foo-children in system", "get,patch configmaps named foo-deletions in system?", "list,watch configmaps named foo-paused in system?", "get,delete configmaps named old-children in system", "list,watch configmaps named old-paused in system?",
				"create leases of coordination.k8s.io in system", "get,watch,update leases of coordination.k8s.io named foo-leader in system",
				"get leases of coordination.k8s.io named old-leader in system",
			},
		},
		"kinds of children are registered in one ConfigMap": {
			op:  foos(func(r *dsl.Resource) { r.Owns("secrets.v1"); r.OnReconcile("one", nothing) }),
			set: rbac.Settings{Namespace: "system"},
			want: []string{
				"list,watch secrets", "list,watch foos of example.com", "create configmaps in system", "get,update configmaps named foo-children in system", "get,patch configmaps named foo-deletions in system?", "list,watch configmaps named foo-paused in system?",
			},
		},
		"CRDs are written by who brings them along": {
			op:   foos(func(r *dsl.Resource) { r.OnReconcile("one", nothing) }),
			set:  rbac.Settings{InstallCRDs: true},
			want: []string{"get,create,patch customresourcedefinitions of apiextensions.k8s.io", "list,watch foos of example.com"},
		},
		"objects are tried by a schema in all namespaces": {
			op: func() *dsl.Operator {
				op := foos(func(r *dsl.Resource) { r.CRD = map[string]any{}; r.OnReconcile("one", nothing) })
				op.Scope.Namespaces = []string{"a"}
				return op
			}(),
			set:  rbac.Settings{InstallCRDs: true},
			want: []string{"get,create,patch customresourcedefinitions of apiextensions.k8s.io", "list foos of example.com?", "list,watch foos of example.com in a"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := test.op.Validate(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, lines(rbac.Of(test.op, test.set))); diff != "" {
				t.Errorf("rights (-want +got):\n%s", diff)
			}
		})
	}
}

// namespacedBut is a lookup by which all but these resources have namespaces.
func namespacedBut(resources ...string) rbac.Lookup {
	return func(name dsl.ResourceName, kind rbac.Kind) rbac.Served {
		plural := name.Resource
		if plural == "" {
			plural = strings.ToLower(kind.Kind) + "s"
		}
		return rbac.Served{Resource: plural, Namespaced: !slices.Contains(resources, plural), Status: true}
	}
}

func leading(le dsl.LeaderElection) *dsl.Operator {
	op := foos(func(r *dsl.Resource) { r.OnReconcile("one", nothing) })
	op.Settings.LeaderElection = le
	return op
}

func TestEventsAreWhereTheirObjectsAre(t *testing.T) {
	events := func(op *dsl.Operator) (out []string) {
		for _, r := range rbac.Of(op, rbac.Settings{}) {
			if r.Resource == "events" {
				out = append(out, r.Verb+" "+r.Namespace)
			}
		}
		return out
	}
	op := dsl.New("nodes")
	op.Resource("nodes.v1", func(r *dsl.Resource) { r.OnReconcile("one", nothing) })
	if diff := cmp.Diff([]string{"create ", "patch "}, events(op)); diff != "" {
		t.Errorf("everywhere (-want +got):\n%s", diff)
	}
	op.Scope.Namespaces = []string{"a"}
	if diff := cmp.Diff([]string{"create a", "patch a", "create default", "patch default"}, events(op)); diff != "" {
		t.Errorf("in a namespace (-want +got):\n%s", diff)
	}
}

// TestDemandsPutNamespacesTogether: demands that differ only by namespace are reported as one.
func TestDemandsPutNamespacesTogether(t *testing.T) {
	op := foos(func(r *dsl.Resource) {
		r.OnReconcile("one", nothing, dsl.WithNeeds(dsl.Need{Verbs: []string{"get"}, Resource: dsl.ResourceName{Resource: "pods"}, Namespace: "c"}),
			dsl.Needs("get", "pods"))
	})
	op.Scope.Namespaces = []string{"b", "a"}
	var got []string
	for _, d := range rbac.Demands(rbac.Of(op, rbac.Settings{})) {
		got = append(got, d.String()+" in "+strings.Join(d.Namespaces, ","))
	}
	want := []string{
		"get pods in a,b,c",
		"get customresourcedefinitions.apiextensions.k8s.io in ", "list customresourcedefinitions.apiextensions.k8s.io in ",
		"watch customresourcedefinitions.apiextensions.k8s.io in ",
		"create events.events.k8s.io in a,b", "patch events.events.k8s.io in a,b",
		"get foos.example.com in a,b", "list foos.example.com in a,b", "watch foos.example.com in a,b", "patch foos.example.com/status in a,b",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("demands (-want +got):\n%s", diff)
	}
}

func TestHandlersThatDoNotSayWhatTheyNeedAreKnown(t *testing.T) {
	op := foos(func(r *dsl.Resource) {
		r.OnReconcile("silent", nothing)
		r.OnReconcile("nothing", nothing, dsl.WithNeeds())
		r.OnReconcile("something", nothing, dsl.Needs("get", "pods"))
	})
	if diff := cmp.Diff([]string{"foos/silent"}, rbac.Undeclared(op)); diff != "" {
		t.Errorf("undeclared (-want +got):\n%s", diff)
	}
}

// scoped is an operator with a scope.
func scoped(scope dsl.Scope) (op *dsl.Operator) {
	op = foos(func(r *dsl.Resource) { r.OnReconcile("one", nothing) })
	op.Scope = scope
	return op
}
