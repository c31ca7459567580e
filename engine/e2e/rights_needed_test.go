// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/handlers"
)

// everyAction is an operator that does with its objects what the stock actions can.
const everyAction = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: needs}
resources:
  - resource: works.v1.e2e.example.com
    related: [{name: old, resource: services.v1, selector: {matchLabels: {old: "true"}}}]
    handlers:
      - id: child
        apply:
          settings:
            includeWhen: self.spec.value != 'third'
            template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}"}, data: {value: "${self.spec.value}"}}
          key:
            includeWhen: self.spec.value != 'third'
            template: {apiVersion: v1, kind: Secret, metadata: {name: "${self.metadata.name}"}, stringData: {value: "${self.spec.value}"}}
      - {id: mark, patch: {apiVersion: v1, kind: Service, metadata: {name: marked, labels: {value: "${self.spec.value}"}}}}
      - {id: status, set: {status: {seen: "${self.spec.value}"}}}
      - {id: label, set: {labels: {seen: "${self.spec.value}"}}}
      - {id: note, event: {reason: Seen, message: it was seen}}
      - {id: clean, delete: "${related.old}"}
`

// rightsCase is an operator, and somebody who makes it do everything that it can, step by step: next
// is asked again and again, and looks how far it has come.
type rightsCase struct {
	op *dsl.Operator
	// conflict is where somebody else writes in between, once.
	conflict string
	// taken is where there is an object already, once, as far as the API server says: one that the cache does not show yet.
	taken schema.GroupResource
	// later: the kinds of children are registered with one request, so changing that is for later versions.
	later   bool
	begin   func(t *testing.T, ns string)
	next    func(t *testing.T, ns string)
	disturb func(t *testing.T, ns string)
}

func fooRights(ns string) rightsCase {
	op := handlers.FooOperator()
	op.Scope.Namespaces = []string{ns}
	op.Settings.LeaderElection = dsl.LeaderElection{Mode: dsl.LeaderLease, Namespace: ns}
	return rightsCase{
		op: op, conflict: "foos/status", later: true, taken: schema.GroupResource{Group: "apps", Resource: "deployments"},
		begin: func(t *testing.T, ns string) { plane.Objects(foos, ns).Create(t, foo("a", 1)) },
		next: func(t *testing.T, ns string) { // scaling repeats the Event
			o := plane.Objects(foos, ns).Get(t, "a")
			wanted := field(o, "spec", "replicas")
			if now := available(o); now > 0 && now < 3 && now == wanted {
				plane.Objects(foos, ns).Patch(t, "a", map[int64]string{1: `{"spec":{"replicas":2}}`, 2: `{"spec":{"replicas":3}}`}[now])
			}
		},
		disturb: func(t *testing.T, ns string) {
			plane.Objects(foos, ns).Patch(t, "a", `{"metadata":{"annotations":{"somebody":"else"}}}`)
		},
	}
}

func actionRights(t *testing.T, ns string) rightsCase {
	t.Helper()
	op, err := config.Parse("operator.yaml", []byte(everyAction), handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	op.Scope.Namespaces = []string{ns}
	return rightsCase{
		op: op, conflict: "works/status",
		begin: func(t *testing.T, ns string) {
			for name, old := range map[string]string{"old": "true", "marked": "false"} {
				plane.Objects("services.v1", ns).Create(t, &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": name, "labels": map[string]any{"old": old}},
					"spec": map[string]any{"clusterIP": "None"},
				}})
			}
			plane.Objects(works, ns).Create(t, work("w", "first"))
		},
		next: func(t *testing.T, ns string) {
			objects := plane.Objects(works, ns)
			o := objects.Get(t, "w")
			next := map[string]string{"first": "second", "second": "third"}[spec(o, "value")]
			if next != "" && status(o, "seen") == spec(o, "value") && o.GetLabels()["seen"] == spec(o, "value") && cluster.Condition(o, "Applied") == "True" {
				objects.Patch(t, "w", `{"spec":{"value":"`+next+`"}}`)
			}
		},
		disturb: func(t *testing.T, ns string) {
			plane.Objects(works, ns).Patch(t, "w", `{"metadata":{"annotations":{"somebody":"else"}}}`)
		},
	}
}

// TestEveryRightIsNeeded takes each right that an operator is said to need away, and sees that
// something fails; with all of them, nothing does but what is said to be optional, which is not given.
func TestEveryRightIsNeeded(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*testing.T, string) rightsCase{
		"functions": func(_ *testing.T, ns string) rightsCase { return fooRights(ns) },
		"actions":   actionRights,
	}
	for name, of := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := neededRights(of(t, "any"), "any")
			if len(all) < 10 {
				t.Fatalf("only %d rights are needed", len(all))
			}
			t.Run("nothing fails with all of them", func(t *testing.T) {
				t.Parallel()
				ns := plane.Namespace(t)
				c := of(t, ns)
				running, proxy := runWith(t, c, ns, neededRights(c, ns))
				var idle []rbac.Rule
				t.Cleanup(func() {
					if len(idle) > 0 {
						t.Errorf("not used: %v", idle)
					}
				})
				waitFor(t, "every right to be used", func() bool {
					c.next(t, ns)
					idle = slices.DeleteFunc(neededRights(c, ns), func(r rbac.Rule) bool { return c.spare(r) || used(proxy, r) })
					return len(idle) == 0
				})
				optional := slices.DeleteFunc(rbac.Of(c.op, rbac.Settings{Namespace: ns}), func(r rbac.Rule) bool { return !r.Optional })
				for _, r := range proxy.Requests(cluster.On("*", "*")) {
					said := slices.ContainsFunc(optional, func(rule rbac.Rule) bool { return asked(r, rule) })
					elsewhere := r.Verb == "list" && r.Resource == "leases" // optional, and not offered where it would be the only one of the cluster
					if r.Code == http.StatusForbidden && !said && !elsewhere {
						t.Errorf("refused: %s %s", r.Verb, r.URI)
					}
				}
				running.AwaitReady(t)
			})
			for i, rule := range all {
				if of(t, "any").spare(rule) {
					continue
				}
				t.Run("something fails without "+strings.ReplaceAll(rule.Verb+" "+rule.Resource+" "+rule.Subresource+rule.Name, " ", "-"), func(t *testing.T) {
					t.Parallel()
					ns := plane.Namespace(t)
					c := of(t, ns)
					left := neededRights(c, ns)
					left = slices.Delete(left, i, i+1)
					running, proxy := runWith(t, c, ns, left)
					waitFor(t, "something to fail", func() bool {
						c.next(t, ns)
						return fails(running, proxy, rule)
					})
					if rule.Verb == "create" && rule.Resource != "events" && rule.Resource != "leases" {
						running.Await(t, "allow it to the operator: operator rbac prints the roles")
					}
				})
			}
		})
	}
}

// neededRights are the rights without which the operator is said not to work.
func neededRights(c rightsCase, ns string) []rbac.Rule {
	return slices.DeleteFunc(rbac.Of(c.op, rbac.Settings{Namespace: ns}), func(r rbac.Rule) bool {
		return r.Optional
	})
}

// spare reports whether a right is needed, and the case does not come to use it.
func (c rightsCase) spare(r rbac.Rule) bool {
	return c.later && r.Name == c.op.Register() && r.Verb == "update"
}

// runWith runs the operator with these rights and no others.
func runWith(t *testing.T, c rightsCase, ns string, rules []rbac.Rule) (*cluster.Running, *cluster.Proxy) {
	t.Helper()
	user := plane.User("needs")
	allow(t, user, rules)
	proxy := cluster.NewProxy(t, user.Config())
	proxy.Inject(cluster.When{Match: cluster.On("patch", c.conflict), Times: 1}, cluster.Before(func(cluster.Request) { c.disturb(t, ns) }))
	proxy.Inject(cluster.When{Match: cluster.On("patch", c.taken.Resource), Times: 1}, cluster.Answer(apierrors.NewConflict(c.taken, "", errors.New("it is there"))))
	running := cluster.Run(t, c.op, engine.Settings{Config: proxy.Config(), Namespace: ns})
	c.begin(t, ns)
	return running, proxy
}

// allow gives a user these rights.
func allow(t *testing.T, user *cluster.User, rules []rbac.Rule) {
	t.Helper()
	for _, role := range rbac.Roles(rules) {
		var policies []rbacv1.PolicyRule
		for _, p := range role.Policies {
			policies = append(policies, rbacv1.PolicyRule{APIGroups: []string{p.Group}, Resources: []string{p.Resource}, ResourceNames: p.Names, Verbs: p.Verbs})
		}
		user.AllowIn(t, role.Namespace, policies...)
	}
}

// asked reports whether a request needs the right. Server-side apply is a patch, that needs the right
// to create for what is not there.
func asked(r cluster.Request, rule rbac.Rule) bool {
	resource := rule.Resource
	if rule.Subresource != "" {
		resource += "/" + rule.Subresource
	}
	return r.Resource == resource && r.Group == rule.Group && (r.Verb == rule.Verb || r.Verb == "patch" && rule.Verb == "create")
}

// used reports whether the API server has granted what needs the right. A first listing is streamed by
// a watch where the API server can do that, and a list elsewhere.
func used(proxy *cluster.Proxy, rule rbac.Rule) bool {
	return slices.ContainsFunc(proxy.Requests(cluster.On("*", "*")), func(r cluster.Request) bool {
		created := rule.Verb != "create" || r.Verb == "create" || r.Code == http.StatusCreated
		streamed := rule.Verb == "list" && r.Verb == "watch" && r.Resource == rule.Resource
		return (asked(r, rule) || streamed) && r.Code > 0 && r.Code != http.StatusForbidden && created
	})
}

// fails reports whether the API server has refused what needs the right, or the operator says that it
// lacks it.
func fails(running *cluster.Running, proxy *cluster.Proxy, rule rbac.Rule) bool {
	refused := func(r cluster.Request) bool { return r.Code == http.StatusForbidden && asked(r, rule) }
	lacks := func(c ops.Check) bool {
		return c.State == ops.Warn && containsAll(c.Message, "forbidden", rule.Verb)
	}
	return slices.ContainsFunc(proxy.Requests(cluster.On("*", "*")), refused) || slices.ContainsFunc(running.Engine.Ready(), lacks)
}
