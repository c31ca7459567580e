// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/engine/operate/cleanup"
)

// tenant has a rule that is a policy, one that is a webhook, and a handler.
const tenant = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: NAME}
settings: {leaderElection: {mode: none}}
scope: {namespaceSelector: {matchLabels: {fort: GROUP}}}
resources:
- resource: limitranges.v1
  handlers: [{id: mark, set: {labels: {marked: "yes"}}}]
admission:
- {resource: configmaps.v1, validate: [{id: map, enforce: BY, rule: "self.?data.?x.orValue('') != 'bad'", message: the data is bad}]}
- {resource: services.v1, validate: [{id: service, enforce: webhook, rule: self.spec.ports.size() < 2, message: there are two ports}]}
`

var (
	badMap  = attempt{"", "POST", "CORE/configmaps", asYAML, `{apiVersion: v1, kind: ConfigMap, metadata: {name: bad}, data: {x: bad}}`, "the data is bad"}
	badPort = attempt{"", "POST", "CORE/services", asYAML, twoPorts, "there are two ports"}
)

// holds waits until the rule that an attempt would break is in force.
func (f *fort) holds(t *testing.T, a attempt) {
	t.Helper()
	await(t, "the rule says "+a.want, func() bool { return strings.Contains(f.send(t, a, "dryRun=All"), a.want) })
}

// TestNamesakesLeaveEachOthersRules holds that operators of one name in two namespaces share nothing, also if one is uninstalled.
func TestNamesakesLeaveEachOthersRules(t *testing.T) {
	t.Parallel()
	first := newFort(t, "policy", tenant)
	second := newFort(t, "policy", strings.ReplaceAll(tenant, "NAME", first.op.Name))
	stop := first.run(t)
	first.holds(t, badMap)
	first.holds(t, badPort)
	before := first.objects(t)
	mark := plane.Mark(t)
	secondStop := second.run(t)
	second.holds(t, badMap)
	second.holds(t, badPort)
	secondStop()
	c, err := cleanup.New(t.Context(), second.op, cleanup.Settings{Config: plane.Config(), Namespace: second.own})
	if err != nil {
		t.Fatal(err)
	}
	if failed := c.Remove(t.Context(), c.Look(t.Context()), nil); len(failed) > 0 {
		t.Fatalf("cleaning: %v", failed)
	}
	await(t, "the rules of the second operator are gone", func() bool {
		return len(second.objects(t)) == 0 && !strings.Contains(second.send(t, badMap, "dryRun=All"), badMap.want)
	})
	stop()
	for _, w := range plane.Writes(t, "", mark) {
		if slices.Contains(before, w.Name) {
			t.Errorf("an object of the first operator was written: %s", w)
		}
	}
	if got := first.objects(t); len(before) != 3 || !slices.Equal(got, before) {
		t.Errorf("the objects of the first operator were %v, and are %v", before, got)
	}
	if got := first.send(t, badMap, "dryRun=All"); !strings.Contains(got, badMap.want) {
		t.Errorf("the rule of the first operator is gone: %s", got)
	}
}

// objects returns the names of the operator's objects for admission.
func (f *fort) objects(t *testing.T) (names []string) {
	t.Helper()
	for _, resource := range []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations"} {
		list, err := listed(t, resource, f.op, f.own)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, list...)
	}
	return names
}

// as runs the operator with the rights that it needs, but for those on some resources.
func (f *fort) as(t *testing.T, without ...string) *cluster.Running {
	t.Helper()
	user := plane.User("tenant")
	for _, role := range rbac.Roles(rbac.Of(f.op, rbac.Settings{Namespace: f.own})) {
		var rules []rbacv1.PolicyRule
		for _, p := range role.Policies {
			if !slices.Contains(without, p.Resource) {
				rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{p.Group}, Resources: []string{p.Resource}, ResourceNames: p.Names, Verbs: p.Verbs})
			}
		}
		if len(rules) > 0 {
			user.AllowIn(t, role.Namespace, rules...)
		}
	}
	return cluster.Run(t, f.op, engine.Settings{Config: user.Config(), Namespace: f.own, Webhooks: engine.Webhooks{Address: "127.0.0.1:0"}})
}

// admissionOf returns what /readyz?verbose says of admission.
func admissionOf(running *cluster.Running) string {
	for _, c := range running.Engine.Ready() {
		if c.Name == "admission" {
			return c.Message
		}
	}
	return ""
}

// TestAnAccountWithoutPoliciesKeepsTheRest holds that an operator says that it may not write policies, and goes on with its handlers and
// webhooks.
func TestAnAccountWithoutPoliciesKeepsTheRest(t *testing.T) {
	t.Parallel()
	f := newFort(t, "policy", tenant)
	running := f.as(t, "validatingadmissionpolicies")
	f.holds(t, badPort)
	plane.Apply(t, f.space, "{apiVersion: v1, kind: LimitRange, metadata: {name: a}, spec: {limits: []}}\n")
	plane.Objects("limitranges.v1", f.space).Await(t, "a", "the handler", func(o *unstructured.Unstructured) bool { return o.GetLabels()["marked"] == "yes" })
	const want = "the account lacks a right to validatingadmissionpolicies.v1.admissionregistration.k8s.io; operator rbac prints the roles"
	running.Await(t, want)
	await(t, "/readyz?verbose says it", func() bool { return strings.Contains(admissionOf(running), want) })
}

// TestARuleThatBecomesAWebhookHoldsAllTheTime holds that the policy of a rule stays until its webhook is there.
func TestARuleThatBecomesAWebhookHoldsAllTheTime(t *testing.T) {
	t.Parallel()
	f := newFort(t, "policy", tenant)
	stop := f.run(t)
	f.holds(t, badMap)
	stop()
	next := newFort(t, "webhook", strings.NewReplacer("NAME", f.op.Name, "GROUP", f.group).Replace(tenant)+
		"- {resource: resourcequotas.v1, validate: [{id: new, rule: 'false', message: there are none}]}\n")
	next.own, next.space = f.own, f.space
	running := next.as(t, "secrets")
	running.Await(t, "secrets")
	next.holds(t, attempt{"", "POST", "CORE/resourcequotas", asYAML, `{apiVersion: v1, kind: ResourceQuota, metadata: {name: a}}`, "there are none"})
	if got := f.objects(t); len(got) != 5 {
		t.Errorf("without a certificate, the objects are %v", got)
	}
	if got := f.send(t, badMap, "dryRun=All"); !strings.Contains(got, "ValidatingAdmissionPolicy") {
		t.Errorf("without a certificate, the answer is %s", got)
	}
	running.Stop(t)
	next.run(t)
	for got := ""; !strings.Contains(got, "admission webhook"); {
		if got = f.send(t, badMap, "dryRun=All"); !strings.Contains(got, `"status":"Failure"`) {
			t.Fatalf("the rule does not hold: %s", got)
		}
	}
}
