// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/cluster/crd"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/sandbox"
)

const (
	// workerOperator writes in each way. Each handler is for the object of its name.
	workerOperator = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: worker}
resources:
  - resource: jobs.v1.why.example.com
    schema: {kind: Job, spec: {size: integer}, status: {size: integer}}
    handlers:
      - {id: child, labels: {case: child}, apply: {copy: {apiVersion: v1, kind: ConfigMap, metadata: {name: copy}, data: {a: b}}}}
      - {id: patched, labels: {case: patched}, patch: {apiVersion: v1, kind: ConfigMap, metadata: {name: red}, data: {a: b}}}
      - {id: status, labels: {case: status}, set: {status: {size: 3}}}
      - {id: spec, labels: {case: spec}, set: {spec: {size: 9}}}
      - {id: changed, labels: {case: changed}, apply: {secret: {apiVersion: v1, kind: Secret, metadata: {name: secret}}}}
`
	// guardOperator refuses what the other one writes.
	guardOperator = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: guard}
admission:
  - resource: configmaps.v1
    validate: [{id: no-data, rule: "!has(self.data)", message: it has data}]
  - resource: secrets.v1
    mutate: [{id: label-it, set: {labels: {a: "${self.data.x}"}}}]
  - resource: jobs.v1.why.example.com
    validate:
      - {id: no-status, rule: "!has(self.status.size)", message: it has a size, subresources: [status]}
      - {id: small, rule: "!has(self.spec.size) || self.spec.size < 5", message: it is large, enforce: webhook}
`
)

// TestWhyNamesTheRuleThatRejectsAWrite holds what operator why says of writes that rules of another operator refuse.
func TestWhyNamesTheRuleThatRejectsAWrite(t *testing.T) {
	t.Parallel()
	to := sandbox.New(t, sandbox.Options{}).Config()
	client := dynamic.NewForConfigOrDie(to)
	for _, kind := range []string{"Namespace//ops", "Namespace//shop", "ConfigMap/shop/red"} {
		part := strings.Split(kind, "/")
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": part[0]}}
		o.SetName(part[2])
		if _, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: strings.ToLower(part[0]) + "s"}).Namespace(part[1]).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	e := startWorker(t, to)
	cases := map[string]string{
		"child":   `handler child failed, and is tried again: ConfigMap shop/copy: configmaps "copy" is rejected by rule no-data of operator guard: it has data`,
		"patched": `handler patched failed, and is tried again: patching ConfigMap shop/red: configmaps "red" is rejected by rule no-data of operator guard: it has data`,
		"status":  `jobs.why.example.com "status" is rejected by rule no-status of operator guard: it has a size`,
		"spec":    `rejected by rule small of operator guard: it is large`,
		"changed": `handler changed failed, and is tried again: Secret shop/secret: rejected by rule label-it of operator guard (its words are not shown, for they may quote a Secret)`,
	}
	jobs := client.Resource(schema.GroupVersionResource{Group: "why.example.com", Version: "v1", Resource: "jobs"}).Namespace("shop")
	for name := range cases {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "why.example.com/v1", "kind": "Job", "spec": map[string]any{}}}
		o.SetName(name)
		o.SetLabels(map[string]string{"case": name})
		if _, err := jobs.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range cases {
		text := ""
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
			answer, err := e.Why(ctx, why.Question{Resource: "jobs", Namespace: "shop", Name: name})
			if err != nil {
				return false, nil // the operator starts
			}
			var page bytes.Buffer
			_ = why.Text(&page, answer, false)
			text = page.String()
			verdict, _, _ := strings.Cut(text, "\n  the operator")
			return strings.Contains(verdict, want), nil
		})
		if err != nil {
			t.Errorf("the verdict about %s lacks %q:\n%s", name, want, text)
		}
	}
}

// startWorker runs both operators, the second one when the rules of the first one are in force.
func startWorker(t *testing.T, to *rest.Config) *engine.Engine {
	t.Helper()
	var ops []*dsl.Operator
	for _, text := range []string{guardOperator, workerOperator} {
		op, err := config.Parse("op.yaml", []byte(text), handlers.Standard())
		if err != nil {
			t.Fatal(err)
		}
		if err := crd.Install(t.Context(), op, to, crd.Settings{Log: logr.Discard()}); err != nil {
			t.Fatal(err)
		}
		ops = append(ops, op)
	}
	awaitRules(t, startEngine(t, ops[0], to))
	return startEngine(t, ops[1], to)
}

// startEngine runs an operator until the test ends.
func startEngine(t *testing.T, op *dsl.Operator, to *rest.Config) *engine.Engine {
	t.Helper()
	e, err := engine.New(op, engine.Settings{
		Config: to, Log: testLog(t, op.Name), Namespace: "ops", Identity: "a", PodName: "a", Webhooks: engine.Webhooks{Address: "127.0.0.1:0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	background(t, func(ctx context.Context) {
		if err := e.Run(ctx); err != nil {
			t.Errorf("running the operator: %v", err)
		}
	})
	return e
}

// awaitRules waits until the checks of an operator say that its rules are in force.
func awaitRules(t *testing.T, e *engine.Engine) {
	t.Helper()
	await(t, "the checks pass", func() bool {
		return !slices.ContainsFunc(e.Ready(), func(c ops.Check) bool {
			return c.State != ops.Pass && slices.Contains([]string{"admission", "webhooks"}, c.Name)
		})
	})
}

// TestWhyOfAnOperatorWithRulesAlone holds that the answer about an object that the operator has only rules for is a sentence.
func TestWhyOfAnOperatorWithRulesAlone(t *testing.T) {
	t.Parallel()
	to := sandbox.New(t, sandbox.Options{}).Config()
	for _, tc := range []struct{ name, resources, want string }{
		{"rules about two kinds", `
admission:
  - {resource: secrets.v1, validate: [{id: a, rule: "true"}]}
  - {resource: pods.v1, validate: [{id: a, rule: "true"}]}`, "it has rules about requests to write secrets.v1, pods.v1"},
		{"a resource with rules alone", `
resources: [{resource: secrets.v1, validate: [{id: a, rule: "true"}]}]`, "it has rules about requests to write secrets.v1"},
		{"rules, and handlers of another kind", `
admission: [{resource: secrets.v1, validate: [{id: a, rule: "true"}]}]
resources: [{resource: pods.v1, handlers: [{id: a, log: {message: a}}]}]`, "it handles pods.v1, and has rules about requests to write secrets.v1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			op, err := config.Parse("op.yaml", []byte("apiVersion: handwerk.dev/v1alpha1\nkind: Operator\nmetadata: {name: guard}"+tc.resources), handlers.Standard())
			if err != nil {
				t.Fatal(err)
			}
			e, err := engine.New(op, engine.Settings{Config: to, Log: testLog(t, op.Name), Namespace: "ops", Identity: "a", PodName: "a"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = e.Why(t.Context(), why.Question{Resource: "secrets", Namespace: "default", Name: "a"})
			if want := "looking for secrets: operator guard does not handle it; " + tc.want; err == nil || err.Error() != want {
				t.Errorf("the error is %v, want %s", err, want)
			}
		})
	}
}
