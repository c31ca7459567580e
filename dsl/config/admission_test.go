// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
)

// ruled is a configuration with rules; the text is what stands under the resource.
func ruled(rules string) string {
	return header + `resources:
- resource: foos.v1.example.com
  schema: {kind: Foo, spec: {size: integer | required=true, color: string}}
  let: {big: self.spec.size > 5}
  related: [{name: peers, resource: foos.v1.example.com}]
` + rules
}

func TestRulesBecomePoliciesIfTheAPIServerCanEvaluateThem(t *testing.T) {
	for _, tc := range []struct{ name, rules, want string }{
		{"a rule about the object", "  validate: [{id: a, rule: self.spec.size < 9}]", "object.spec.size < 9"},
		{"a rule about the options of the request", "  validate: [{id: a, rule: request.options.kind != 'x'}]", "request.options.kind != 'x'"},
		{"a rule with a let", "  validate: [{id: a, rule: '!big'}]", "!(object.spec.size > 5\n)"},
		{"a rule about deletions sees the object that goes", "  validate: [{id: a, rule: self.spec.size < 9, operations: [delete]}]", "oldObject.spec.size < 9"},
		{"a rule about more than deletions sees either", "  validate: [{id: a, rule: self.spec.size < 9, operations: [delete, create]}]", "(object != null ? object : oldObject).spec.size < 9"},
		{"a when with params stands before the rule", "  validate: [{id: a, rule: self.spec.size < 9, when: params.data.on == 'yes', params: {apiVersion: v1, kind: ConfigMap, name: limits}}]",
			"!(params.data.on == 'yes') || (object.spec.size < 9)"},
		{"a comment before the rule ends before it", "  validate: [{id: a, rule: self.spec.size < 9, when: params.data.on == 'yes' // on, params: {apiVersion: v1, kind: ConfigMap, name: limits}}]",
			"!(params.data.on == 'yes' // on\n) || (object.spec.size < 9)"},
		{"a rule that reads related objects needs a webhook", "  validate: [{id: a, rule: related.peers.size() < 9}]", "webhook: it reads related"},
		{"a function of Handwerk needs a webhook", "  validate: [{id: a, rule: hash(self.spec.size) != ''}]", "webhook: the API server cannot evaluate it: undeclared reference to 'hash'"},
		{"a message that needs a webhook makes the rule one", "  validate: [{id: a, rule: self.spec.size < 9, message: '${now}'}]", "webhook: message: it reads now"},
		{"the author may want a webhook", "  validate: [{id: a, rule: self.spec.size < 9, enforce: webhook}]", "webhook: enforce says so"},
		{"fields that a rule sets", "  mutate: [{id: a, set: {spec: {color: null}}}]", `changes: ("spec" in object && type(object["spec"]) == map && "color" in object["spec"] ? [{"op": dyn("remove"), "path": dyn("/spec/color"), "value": dyn(null)}] : [])`},
		{"keys of annotations stay as they are written", "  mutate: [{id: a, set: {annotations: {Foo/Bar: 'size ${self.spec.size}'}}}]", `annotations_Foo_Bar: "size " + string(object.spec.size)
changes: ("annotations" in object["metadata"] && type(object["metadata"]["annotations"]) == map ? [] : [{"op": dyn("add"), "path": dyn("/metadata/annotations"), "value": dyn({})}]) +
[{"op": dyn("add"), "path": dyn("/metadata/annotations/Foo~1Bar"), "value": dyn(variables.annotations_Foo_Bar)}]`},
		{"a value that reads an index", "  mutate: [{id: a, set: {spec: {size: '${related.peers.size()}'}}}]", "webhook: spec.size: it reads related"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			op, err := config.Parse("x.yaml", []byte(ruled(tc.rules)), handlers.Standard())
			if err != nil {
				t.Fatal(err)
			}
			a := op.Resources()[0].Admissions()[0].Admission
			got := "webhook: " + a.Webhook
			if a.Policy != nil {
				got = a.Policy.Expression
				for _, v := range a.Policy.Variables {
					got = strings.TrimSpace(got + "\n" + v.Name + ": " + v.Expression)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the rule is (-want +got):\n%s", diff)
			}
		})
	}
}

// TestConditionsOfARuleHaveAnOrder holds that a policy is the same in each process: else each start would write it again.
func TestConditionsOfARuleHaveAnOrder(t *testing.T) {
	want := []string{
		`has(object.metadata.labels) && "a" in object.metadata.labels`,
		`has(object.metadata.annotations) && "b" in object.metadata.annotations`,
		"object.spec.size > 1",
	}
	for range 20 {
		op, err := config.Parse("x.yaml", []byte(ruled("  validate: [{id: a, rule: 'true', when: self.spec.size > 1, annotations: {b: {exists: true}}, labels: {a: {exists: true}}}]")), handlers.Standard())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, op.Resources()[0].Admissions()[0].Admission.Policy.Conditions); diff != "" {
			t.Fatalf("the conditions (-want +got):\n%s", diff)
		}
	}
}

func TestFaultsOfRulesHavePlacesAndCures(t *testing.T) {
	for _, tc := range []struct{ name, rules, want string }{
		{"no rule", "  validate: [{id: a}]", "x.yaml:9:14: resources[0].validate[0]: a rule has rule, or call for a function in Go"},
		{"no change", "  mutate: [{id: a}]", "x.yaml:9:12: resources[0].mutate[0]: a rule has set, or call for a function in Go"},
		{"variables of admission policies", "  validate: [{id: a, rule: object.spec.size >= oldObject.spec.size}]", "x.yaml:9:28: resources[0].validate[0].rule: unknown variable \"object\" (did you mean \"self\"?)\nx.yaml:9:48: resources[0].validate[0].rule: unknown variable \"oldObject\" (did you mean \"old\"?)"},
		{"an unknown field", "  validate: [{id: a, rule: self.spec.sise < 9}]", `x.yaml:9:38: resources[0].validate[0].rule: unknown field "sise" in self.spec (did you mean "size"?)`},
		{"an unknown field of the request", "  validate: [{id: a, rule: request.user.username != ''}]", `x.yaml:9:36: resources[0].validate[0].rule: unknown field "user" in request (want one of dryRun, kind, name, namespace, operation, options, requestKind, requestResource, requestSubResource, resource, subResource, userInfo)`},
		{"an unknown field of the request in a message", "  validate: [{id: a, rule: 'true', message: '${request.userInfo.name}'}]", `x.yaml:9:65: resources[0].validate[0].message: unknown field "name" in request.userInfo (want one of extra, groups, uid, username)`},
		{"an unknown field of the request in a change", "  mutate: [{id: a, set: {labels: {by: '${request.userInfo.name}'}}}]", `x.yaml:9:59: resources[0].mutate[0].set.labels.by: unknown field "name" in request.userInfo (want one of extra, groups, uid, username)`},
		{"a value that no label may have", "  mutate: [{id: a, set: {labels: {by: 'a b'}}}]", `x.yaml:9:39: resources[0].mutate[0].set.labels.by: is no value of a label: ` + strings.ReplaceAll(validation.IsValidLabelValue("a b")[0], "  ", " ")},
		{"an unknown operation", "  validate: [{id: a, rule: 'true', operations: [patch]}]", `x.yaml:9:49: resources[0].validate[0].operations[0]: unknown operation "patch" (want one of create, update, delete, connect)`},
		{"a variable of handlers", "  validate: [{id: a, rule: cause == 'create'}]", "x.yaml:9:28: resources[0].validate[0].rule: cause is not known to a rule about requests (want one of self, old, request, related, indexes, now)"},
		{"a variable of handlers in a message", "  validate: [{id: a, rule: 'true', message: '${children}'}]", "x.yaml:9:48: resources[0].validate[0].message: children is not known to a rule about requests (want one of self, old, request, related, indexes, now)"},
		{"an unknown variable", "  validate: [{id: a, rule: zzzz == 1}]", `x.yaml:9:28: resources[0].validate[0].rule: unknown variable "zzzz" (want one of self, old, now, related, indexes, request, big)`},
		{"an unknown variable of a rule with params", "  validate: [{id: a, rule: parms == 1, params: {apiVersion: v1, kind: ConfigMap, name: a}}]", `x.yaml:9:28: resources[0].validate[0].rule: unknown variable "parms" (did you mean "params"?)`},
		{"an unknown variable of a message", "  validate: [{id: a, rule: 'true', message: '${zzzz}'}]", `x.yaml:9:48: resources[0].validate[0].message: unknown variable "zzzz" (want one of self, old, now, related, indexes, request, big)`},
		{"an unknown variable of a change", "  mutate: [{id: a, set: {spec: {size: '${chidren}'}}}]", `x.yaml:9:42: resources[0].mutate[0].set.spec.size: unknown variable "chidren" (want one of self, old, now, related, indexes, request, big)`},
		{"an unknown function of handlers", "  handlers: [{id: a, call: ops.Nothing}]", `x.yaml:9:28: resources[0].handlers[0].call: unknown function "ops.Nothing"; registered are foo.Deployment, foo.Farewell, foo.Status, ops.Handle`},
		{"an unknown function of daemons", "  daemons: [{id: a, call: ops.Nothing}]", `x.yaml:9:27: resources[0].daemons[0].call: unknown function "ops.Nothing"; registered are ops.Watch`},
		{"an unknown function of rules", "  validate: [{id: a, call: ops.Nothing}]", `x.yaml:9:28: resources[0].validate[0].call: unknown function "ops.Nothing" (want ops.Rule)`},
		{"a function of rules as a handler", "  handlers: [{id: a, call: ops.Rule}]", `x.yaml:9:28: resources[0].handlers[0].call: ops.Rule is for rules about requests: it stands under validate or mutate`},
		{"a message of two lines", "  validate: [{id: a, rule: 'true', message: \"a\\nb\"}]", "x.yaml:9:45: resources[0].validate[0].message: want one line, which is all that the API server takes (write >- in the place of |)"},
		{"params without an object", "  validate: [{id: a, rule: params.x == 1}]", "x.yaml:9:28: resources[0].validate[0].rule: params is not there: the rule names no object under params"},
		{"a rule that cannot be a policy", "  validate: [{id: a, enforce: policy, rule: related.peers.size() < 9}]", "x.yaml:9:31: resources[0].validate[0].enforce: the rule cannot be a policy: it reads related"},
		{"params of a webhook", "  validate: [{id: a, rule: hash(params) == '', params: {apiVersion: v1, kind: ConfigMap, name: a}}]", "x.yaml:9:56: resources[0].validate[0].params: is for policies, and the rule cannot be one: the API server cannot evaluate it: undeclared reference to 'hash'"},
		{"the status", "  mutate: [{id: a, set: {status: {a: 1}}}]", "x.yaml:9:26: resources[0].mutate[0].set.status: is not stored with the object, so a rule about requests cannot set it"},
		{"an id twice", "  validate: [{id: a, rule: 'true'}, {id: A, rule: 'true'}]", "x.yaml:9:42: resources[0].validate[1].id: the id is used twice (first at x.yaml:9:19)"},
		{"a change of what is deleted", "  mutate: [{id: a, operations: [delete], set: {spec: {size: 1}}}]", "x.yaml:9:33: resources[0].mutate[0].operations[0]: a deletion stores no object that could be changed"},
		{"a subresource that the kind lacks", "  validate: [{id: a, rule: 'true', subresources: [stats]}]", `x.yaml:9:51: resources[0].validate[0].subresources[0]: foos have no subresource "stats" (did you mean "status"?)`},
		{"connecting to a custom resource", "  validate: [{id: a, rule: 'true', operations: [connect]}]", `x.yaml:9:49: resources[0].validate[0].operations[0]: nobody connects to foos: their CRD has no such subresource`},
		{"a timeout that the API server does not have", "  validate: [{id: a, rule: 'true', enforce: webhook, timeout: 1m}]", "x.yaml:9:63: resources[0].validate[0].timeout: is 1m0s, and the API server waits for a webhook 1 to 30 whole seconds (want 30s)"},
		{"an operation in lower case", "  validate: [{id: a, rule: request.operation == 'update'}]", `x.yaml:9:49: resources[0].validate[0].rule: unknown operation "update" (did you mean "UPDATE"?)`},
		{"an unknown operation in a list", "  validate: [{id: a, rule: 'true', when: \"request['operation'] in ['CREATE', 'PATCH']\"}]", `x.yaml:9:78: resources[0].validate[0].when: unknown operation "PATCH" (want one of CREATE, UPDATE, DELETE, CONNECT)`},
		{"an unknown operation in a change", "  mutate: [{id: a, set: {labels: {by: \"${request.operation != 'Create' ? 'a' : 'b'}\"}}}]", `x.yaml:9:63: resources[0].mutate[0].set.labels.by: unknown operation "Create" (did you mean "CREATE"?)`},
		{"an action of a change", "  mutate: [{id: a, action: warn, set: {spec: {size: 1}}}]", `x.yaml:9:20: resources[0].mutate[0].action: unknown field (want one of call, set, id, operations, subresources, when, labels, annotations, params, failurePolicy, enforce, timeout)`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			registry := handlers.Standard()
			registry.Func("ops.Handle", func(context.Context, *dsl.Request) error { return nil })
			registry.Daemon("ops.Watch", func(context.Context, *dsl.DaemonRequest) error { return nil })
			registry.Admission("ops.Rule", func(context.Context, *dsl.AdmissionRequest) error { return nil })
			faults := faultsOf(t, "x.yaml", []byte(ruled(tc.rules)), registry)
			var got []string
			for _, f := range faults {
				got = append(got, f.Error())
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnEntryOfAdmissionHasRules(t *testing.T) {
	var got []string
	for _, f := range faultsOf(t, "x.yaml", []byte(ruled("  handlers: [{id: a, log: {message: hi}}]\nadmission: [{resource: pods.v1}]\n")), handlers.Standard()) {
		got = append(got, f.Error())
	}
	if diff := cmp.Diff([]string{"x.yaml:10:13: admission[0]: an entry of admission has validate or mutate"}, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

// TestRulesOfAnOwnResourceHaveTheirPlace holds that the fault says where rules belong if the operator handles the resource itself.
func TestRulesOfAnOwnResourceHaveTheirPlace(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"a resource with handlers", "admission: [{resource: foos.v1.example.com, validate: [{id: a, rule: 'true'}]}]", "foos.v1.example.com is declared twice: put its rules (validate, mutate) where its handlers and its schema are (first at x.yaml:5:13)"},
		{"another version of it", "admission: [{resource: foos.v2.example.com, validate: [{id: a, rule: 'true'}]}]", "foos.v2.example.com has the same objects as foos.v1.example.com: put its rules (validate, mutate) where its handlers and its schema are (first at x.yaml:5:13)"},
		{"two entries of rules", "admission: [{resource: pods.v1, validate: [{id: a, rule: 'true'}]}, {resource: pods.v1, validate: [{id: b, rule: 'true'}]}]", "pods.v1 is declared twice: put the rules of both under one (first at x.yaml:10:24)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, f := range faultsOf(t, "x.yaml", []byte(ruled("  handlers: [{id: a, log: {message: hi}}]\n"+tc.text+"\n")), handlers.Standard()) {
				got = append(got, f.Message)
			}
			if diff := cmp.Diff([]string{tc.want}, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestASelectorOfNamespacesIsForObjectsInNamespaces(t *testing.T) {
	for resource, want := range map[string]string{
		"pods.v1": "", "namespaces.v1": "", "nodes.v1": "nodes have no namespace, so the rules hold for all of them: select by selector, or by when",
	} {
		entry := "admission: [{resource: " + resource + ", namespaceSelector: {matchLabels: {a: b}}, validate: [{id: a, rule: 'true'}]}]\n"
		got := warningsOf(t, ruled("  handlers: [{id: a, log: {message: '${big}'}}]\n"+entry))
		if diff := cmp.Diff(want, strings.Join(got, "\n")); diff != "" {
			t.Errorf("warnings of %s (-want +got):\n%s", resource, diff)
		}
	}
}

// warningsOf returns the warnings of a configuration.
func warningsOf(t *testing.T, text string) (out []string) {
	t.Helper()
	op, err := config.Parse("x.yaml", []byte(text), handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	_, warnings, err := config.Check(op)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range warnings {
		out = append(out, w.Message)
	}
	return out
}

func TestARuleAboutCreationsIsToAskForOld(t *testing.T) {
	const warning = "old is null for a creation: write operations: [update], or ask old == null before"
	for _, tc := range []struct{ name, rule, want string }{
		{"old is read", "rule: self.spec.size >= old.spec.size", warning},
		{"old is read by when", "rule: 'true', when: old.spec.size > 1", warning},
		{"the rule is about updates", "rule: self.spec.size >= old.spec.size, operations: [update, delete]", ""},
		{"the rule asks for old", "rule: 'old == null || self.spec.size >= old.spec.size'", ""},
		{"the rule asks for a field of old", "rule: '!has(old.spec) || self.spec.size >= old.spec.size'", ""},
		{"the rule takes a default", "rule: 'self.spec.size >= old.?spec.size.orValue(0)'", ""},
		{"when asks for old", "rule: self.spec.size >= old.spec.size, when: old != null", ""},
		{"when asks for the operation", "rule: self.spec.size >= old.spec.size, when: request.operation == 'UPDATE'", ""},
		{"errors are ignored", "rule: self.spec.size >= old.spec.size, failurePolicy: Ignore", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := warningsOf(t, ruled("  handlers: [{id: h, log: {message: '${big}'}}]\n  validate: [{id: a, "+tc.rule+"}]"))
			if diff := cmp.Diff(tc.want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAMissingValueOfARuleIsAnError holds that a rule removes no field because something is missing, as a policy does not.
func TestAMissingValueOfARuleIsAnError(t *testing.T) {
	op, err := config.Parse("x.yaml", []byte(ruled("  mutate: [{id: a, set: {labels: {of: '${request.subResource}'}}}]")), handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	r := &dsl.AdmissionRequest{Patch: dsl.NewPatch(), Subject: dsl.Subject{
		Object: &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1)}}}, Vars: map[string]any{dsl.RequestVariable: map[string]any{}},
	}}
	if err := op.Resources()[0].Admissions()[0].Admission.Func(t.Context(), r); err == nil || !r.Patch.Empty() {
		t.Errorf("the error is %v, and the change %v", err, r.Patch.Object)
	}
}
