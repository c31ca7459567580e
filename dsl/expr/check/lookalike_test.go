// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// TestTextThatLooksLikeAnExpression has texts as they stand in real manifests, and the expression that is reported as
// probably meant; empty where nothing may be reported.
func TestTextThatLooksLikeAnExpression(t *testing.T) {
	tests := map[string]struct {
		// at is the place in the object, text what stands there.
		at, text string
		want     string
	}{
		"a way without a sign":                     {"spec.image", "self.spec.image", "self.spec.image"},
		"a way with brackets":                      {"spec.image", "self.metadata.labels['app']", "self.metadata.labels['app']"},
		"a way through a child":                    {"spec.ip", "children.deployment.status.replicas", "children.deployment.status.replicas"},
		"a way through the old object":             {"spec.was", "old.spec.image", "old.spec.image"},
		"a dollar alone":                           {"spec.image", "$self.spec.image", "self.spec.image"},
		"a dollar within a text":                   {"metadata.name", "$self.metadata.name-web", "self.metadata.name"},
		"a dollar behind an expression":            {"metadata.name", "${self.metadata.name}-$self.spec.name", "self.spec.name"},
		"round brackets":                           {"spec.image", "$(self.spec.image)", "self.spec.image"},
		"round brackets around parameters":         {"spec.image", "repo:$(params.tag)", "params.tag"},
		"round brackets in a command line":         {"spec.containers.args", "--size=$(self.spec.size)", "self.spec.size"},
		"a Go template":                            {"spec.image", "{{ .Spec.Image }}", "self.spec.image"},
		"a Go template with a long name":           {"spec.tls", "{{.Spec.TLS.SecretName}}", "self.spec.tls.secretName"},
		"a Go template in lower case":              {"metadata.name", "{{ .metadata.name }}-web", "self.metadata.name"},
		"double braces":                            {"spec.image", "{{ self.spec.image }}", "self.spec.image"},
		"double braces that take away space":       {"spec.image", "{{- self.spec.image -}}", "self.spec.image"},
		"braces without a dollar":                  {"spec.image", "repo/{self.spec.image}", "self.spec.image"},
		"a value of a ConfigMap, in one line":      {"data.replicas", "{{ .Spec.Replicas }}", "self.spec.replicas"},
		"a field that no object has":               {"spec.kind", "$self.topLevel", ""},
		"an expression":                            {"spec.image", "${self.spec.name}", ""},
		"an expression that is meant as text":      {"spec.image", "$${self.spec.image}", ""},
		"a container's own variable":               {"spec.containers.args", "--host=$(HOSTNAME)", ""},
		"a container's own variable, elsewhere":    {"spec.env.value", "http://$(POD_IP):$(PORT)", ""},
		"a variable that Kubernetes leaves alone":  {"spec.env.value", "$$(self.spec.x)", ""},
		"a shell script in one line":               {"spec.containers.command", "for f in *; do echo $self.spec.x; done", ""},
		"a shell script":                           {"data.run", "#!/bin/sh\necho $(self.spec.x) {{ .Spec.X }}\n", ""},
		"a script around an expression":            {"data.run", "x=${self.spec.name}\necho $self.spec.name\n", ""},
		"a template of another program":            {"data.nginx", "server {\n  {{ .Spec.Host }}\n}\n", ""},
		"kubectl's template":                       {"spec.containers.args", "-o=go-template={{ .metadata.name }}", ""},
		"kubectl's path":                           {"spec.containers.args", "-o=jsonpath={.spec.x}", ""},
		"a path in a field for one":                {"spec.jsonPath", ".spec.replicas", ""},
		"a line of an alert":                       {"spec.annotations.summary", "{{ $labels.instance }} is down since {{ $value }}", ""},
		"a template of an alert":                   {"spec.title", "{{ .CommonLabels.alertname }}", ""},
		"a secret's template":                      {"spec.data.password", "{{ .password }}", ""},
		"a chart's value":                          {"spec.x", "{{ .Values.image }}", ""},
		"a workflow's variable":                    {"spec.x", "{{inputs.parameters.message}}", ""},
		"a dashboard's legend":                     {"spec.legendFormat", "{{namespace}}/{{pod}}", ""},
		"a rule of a CRD":                          {"spec.validations.rule", "self.spec.enabled", ""},
		"an expression of a policy":                {"spec.validations.expression", "self.spec.replicas", ""},
		"a file of a name like a variable":         {"data.file", "self.crt", ""},
		"a file of the name of a child":            {"data.file", "children.json", ""},
		"a file of the name of parameters":         {"data.file", "params.yaml", ""},
		"a sentence with a way in it":              {"spec.description", "It is as self.spec.size says.", ""},
		"a way of Kubernetes":                      {"spec.env.fieldPath", "metadata.name", ""},
		"a selector of another program":            {"spec.x", "object.spec.replicas", ""},
		"a host":                                   {"spec.host", "self.example.com", ""},
		"a regular expression":                     {"spec.pattern", `^\$[a-z]+\{[0-9]{2}\}$`, ""},
		"a price":                                  {"spec.price", "$5.00", ""},
		"braces of JSON":                           {"metadata.annotations.x", `{"self": {"spec": "x"}}`, ""},
		"a word alone":                             {"spec.x", "self", ""},
		"a Go template's own words":                {"spec.x", "{{ if .Spec.X }}a{{ end }}", ""},
		"a path within the braces of another tool": {"spec.x", "{.spec.x}", ""},
	}
	c, s := compiler(t), schemas(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var value any = test.text
			for _, step := range slices.Backward(strings.Split(test.at, ".")) {
				value = map[string]any{step: value}
			}
			tmpl, err := c.Template(value, "at")
			if err != nil {
				t.Fatal(err)
			}
			var reported []string
			for _, err := range check.Template(tmpl, s, nil) {
				misfit, is := errors.AsType[*shape.Misfit](err)
				if !is || !misfit.Warning || strings.Join(misfit.Path, ".") != "at."+test.at {
					t.Errorf("something else is reported: %#v", err)
				}
				reported = append(reported, err.Error())
			}
			var want []string
			if test.want != "" {
				want = []string{fmt.Sprintf("write ${%s} (or", test.want)}
				if len(reported) == 1 && strings.Contains(reported[0], want[0]) {
					return
				}
			}
			if diff := cmp.Diff(want, reported); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOtherProgramsHaveTheirOwnExpressions holds that objects whose programs write $(params.x) and the like are let be.
func TestOtherProgramsHaveTheirOwnExpressions(t *testing.T) {
	c, s := compiler(t), schemas(t)
	for version, want := range map[string]int{"tekton.dev/v1": 0, "argoproj.io/v1alpha1": 0, "v1": 2} {
		tmpl, err := c.Template(map[string]any{"apiVersion": version, "spec": map[string]any{"image": "$(params.image)", "name": "{{ .metadata.name }}"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := check.Template(tmpl, s, nil); len(got) != want {
			t.Errorf("%s is reported: %v", version, got)
		}
	}
}
