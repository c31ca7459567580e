// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/yaml"

	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
)

const policiesPath = "/apis/admissionregistration.k8s.io/v1/"

// policy writes a policy of a kind for ConfigMaps, and a binding. Both are YAML specs.
func (w wire) policy(kind, name, spec, binding string) {
	w.t.Helper()
	const rules = `matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE, UPDATE]}]}`
	if !strings.Contains(spec, "matchConstraints") {
		spec = rules + "\n" + spec
	}
	w.yaml(policiesPath+kind+"admissionpolicies", fmt.Sprintf("metadata: {name: %s}\nspec:\n%s", name, indented(spec)))
	w.yaml(policiesPath+kind+"admissionpolicybindings", fmt.Sprintf("metadata: {name: %s}\nspec:\n  policyName: %s\n%s", name, name, indented(binding)))
}

func indented(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}

// yaml creates an object.
func (w wire) yaml(path, text string) {
	w.t.Helper()
	body, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		w.t.Fatal(err, text)
	}
	if out := w.send(http.MethodPost, path, string(body)); out.code != http.StatusCreated {
		w.t.Fatal(out.text, text)
	}
}

func TestAPolicyDenies(t *testing.T) {
	w := newWire(t, complete.Settings())
	w.policy("validating", "good", `validations: [{expression: "object.metadata.name == 'good'", message: be good}]`, `validationActions: [Deny]`)
	out := w.send(http.MethodPost, inDefault, `{"metadata":{"name":"bad"}}`)
	const want = `configmaps "bad" is forbidden: ValidatingAdmissionPolicy 'good' with binding 'good' denied request: be good`
	if out.code != http.StatusUnprocessableEntity || out.message() != want {
		t.Errorf("%d %s", out.code, out.text)
	}
	if out := w.send(http.MethodPost, inDefault, `{"metadata":{"name":"good"}}`); out.code != http.StatusCreated {
		t.Errorf("%d %s", out.code, out.text)
	}
}

func TestAPolicyChangesObjects(t *testing.T) {
	w := newWire(t, complete.Settings())
	w.policy("mutating", "by", `
reinvocationPolicy: Never
mutations:
- patchType: JSONPatch
  jsonPatch: {expression: '[JSONPatch{op: "add", path: "/data", value: {"by": "policy"}}]'}
- patchType: ApplyConfiguration
  applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"was": object.data.by}}}'}`, ``)
	out := w.send(http.MethodPost, inDefault, `{"metadata":{"name":"a"}}`)
	if out.code != http.StatusCreated || !strings.Contains(out.text, `"by":"policy"`) || !strings.Contains(out.text, `"was":"policy"`) {
		t.Errorf("%d %s", out.code, out.text)
	}
}

func TestPoliciesComeBeforeWebhooks(t *testing.T) {
	w := newWire(t, complete.Settings())
	const count = `[JSONPatch{op: "add", path: "/data", value: {"count": string(int(object.?data.count.orValue("0")) + 1)}}]`
	w.policy("mutating", "once", "reinvocationPolicy: Never\n"+
		`mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: "add", path: "/metadata/labels", value: {"by": "policy"}}]'}}]`, ``)
	w.policy("mutating", "again", "reinvocationPolicy: IfNeeded\nmutations: [{patchType: JSONPatch, jsonPatch: {expression: '"+count+"'}}]", ``)
	w.policy("validating", "deny", `validations: [{expression: "object.metadata.name != 'bad'", message: be good}]`, `validationActions: [Deny]`)
	var seen []string
	w.hook("mutating", "", func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		seen = append(seen, string(r.Object.Raw))
		return &admissionv1.AdmissionResponse{Allowed: true}
	})
	w.hook("validating", "", func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		seen = append(seen, r.Name)
		return &admissionv1.AdmissionResponse{Allowed: true}
	})
	out := w.send(http.MethodPost, inDefault, `{"metadata":{"name":"a"}}`)
	if out.code != http.StatusCreated || fmt.Sprint(out.json["data"]) != "map[count:2]" {
		t.Errorf("%d %s", out.code, out.text)
	}
	if len(seen) != 2 || !strings.Contains(seen[0], `"by":"policy"`) || !strings.Contains(seen[0], `"count":"1"`) {
		t.Errorf("the webhooks have seen %q", seen)
	}
	if out := w.send(http.MethodPost, inDefault, `{"metadata":{"name":"bad"}}`); out.code != http.StatusUnprocessableEntity || len(seen) != 3 {
		t.Errorf("%d %s, and the webhooks have seen %q", out.code, out.text, seen)
	}
}

func TestAWebhookIsCalledIfItsConditionsHold(t *testing.T) {
	const conditions = `,"failurePolicy":"%s","matchConditions":[{"name":"not-free","expression":"object.metadata.name != 'free'"},{"name":"fails","expression":"object.metadata.name == 'good' || object.data.x == 'x'"}]`
	for policy, want := range map[string]int{"Fail": http.StatusForbidden, "Ignore": http.StatusCreated} {
		t.Run(policy, func(t *testing.T) {
			w := newWire(t, complete.Settings())
			var seen []string
			w.hook("validating", fmt.Sprintf(conditions, policy), func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
				seen = append(seen, r.Name)
				return &admissionv1.AdmissionResponse{Allowed: true}
			})
			for _, name := range []string{"free", "good"} {
				if out := w.send(http.MethodPost, inDefault, `{"metadata":{"name":"`+name+`"}}`); out.code != http.StatusCreated {
					t.Errorf("%s: %d %s", name, out.code, out.text)
				}
			}
			out := w.send(http.MethodPost, inDefault, `{"metadata":{"name":"bad"}}`)
			if out.code != want || want == http.StatusForbidden && !strings.HasPrefix(out.message(), `configmaps "bad" is forbidden: expression 'object.metadata.name == 'good'`) {
				t.Errorf("bad: %d %s", out.code, out.text)
			}
			if fmt.Sprint(seen) != "[good]" {
				t.Errorf("the webhook has seen %v", seen)
			}
		})
	}
}

func TestAPolicyThatIsGoneHasNoEffect(t *testing.T) {
	w := newWire(t, complete.Settings())
	w.policy("validating", "never", `validations: [{expression: "false"}]`, `validationActions: [Deny]`)
	for _, step := range []struct {
		method, path string
		code         int
	}{
		{http.MethodPost, inDefault, http.StatusUnprocessableEntity},
		{http.MethodDelete, policiesPath + "validatingadmissionpolicybindings/never?dryRun=All", http.StatusOK},
		{http.MethodPost, inDefault, http.StatusUnprocessableEntity},
		{http.MethodDelete, policiesPath + "validatingadmissionpolicybindings/never", http.StatusOK},
		{http.MethodPost, inDefault, http.StatusCreated},
	} {
		body := ""
		if step.method == http.MethodPost {
			body = `{"metadata":{"name":"a"}}`
		}
		if out := w.send(step.method, step.path, body); out.code != step.code {
			t.Errorf("%s %s: %d %s", step.method, step.path, out.code, out.text)
		}
	}
}
