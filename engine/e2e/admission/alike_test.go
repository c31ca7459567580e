// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/sandbox"
)

// alike is a rule, an object, and the answer to the object's creation, whoever evaluates the rule.
type alike struct{ kind, rule, spec, want string }

// answers are the rules by the label of their objects.
var answers = map[string]alike{
	"rule-reads-missing":          {"validate", `rule: self.spec.size > 1`, `{}`, `422 Invalid an expression failed`},
	"rule-with-reason-fails":      {"validate", `rule: self.spec.size > 1, reason: Forbidden`, `{}`, `422 Invalid an expression failed`},
	"rule-is-no-bool":             {"validate", `rule: self.spec.any.x`, `{any: {x: red}}`, `422 Invalid an expression failed`},
	"when-reads-missing":          {"validate", `rule: "false", when: self.spec.size > 1`, `{}`, `422 Invalid an expression failed`},
	"message-reads-missing":       {"validate", `rule: "false", message: "no ${self.spec.size}"`, `{}`, `422 Invalid no ${self.spec.size}`},
	"warning-reads-missing":       {"validate", `rule: self.spec.size > 1, action: warn`, `{}`, `{}` + "\n" + `warning: an expression failed`},
	"ignored-rule-reads-missing":  {"validate", `rule: self.spec.size > 1, failurePolicy: Ignore`, `{}`, `{}`},
	"ignored-when-reads-missing":  {"validate", `rule: "false", when: self.spec.size > 1, failurePolicy: Ignore`, `{}`, `{}`},
	"reason-forbidden":            {"validate", `rule: "false", message: "no", reason: Forbidden`, `{}`, `403 Forbidden no`},
	"reason-too-large":            {"validate", `rule: "false", message: "no", reason: RequestEntityTooLarge`, `{}`, `413 RequestEntityTooLarge no`},
	"value-reads-missing":         {"mutate", `set: {spec: {size: "${self.spec.map.x}"}}`, `{}`, `403 Invalid an expression failed`},
	"label-reads-missing":         {"mutate", `set: {labels: {a: "${self.spec.color}"}}`, `{}`, `403 Invalid an expression failed`},
	"label-is-a-map":              {"mutate", `set: {labels: {a: "${self.spec.map}"}}`, `{map: {x: 1}}`, `403 Invalid an expression failed`},
	"changes-when-reads-missing":  {"mutate", `set: {spec: {size: 1}}, when: self.spec.size > 1`, `{}`, `403 Invalid an expression failed`},
	"entry-when-reads-missing":    {"mutate", `set: {spec: {size: 1}, when: {spec.size: self.spec.size > 1}}`, `{}`, `403 Invalid an expression failed`},
	"ignored-value-reads-missing": {"mutate", `set: {spec: {size: "${self.spec.map.x}"}}, failurePolicy: Ignore`, `{}`, `{}`},
	"parent-is-missing":           {"mutate", `set: {spec: {map: {x: 1}}}`, `{}`, `{"map":{"x":1}}`},
	"parent-is-null":              {"mutate", `set: {spec: {map: {x: 1}}}`, `{map: null}`, `{"map":{"x":1}}`},
	"parents-are-null":            {"mutate", `set: {spec: {any: {x: {k: {n: 1}}}}}`, `{any: {x: null, m: 1}}`, `{"any":{"m":1,"x":{"k":{"n":1}}}}`},
	"parent-is-a-text":            {"mutate", `set: {spec: {any: {x: {k: 1}}}}`, `{any: {x: text}}`, `{"any":{"x":{"k":1}}}`},
	"parent-is-a-list":            {"mutate", `set: {spec: {any: {x: {k: 1}}}}`, `{any: {x: [1]}}`, `{"any":{"x":{"k":1}}}`},
	"removed-parent-is-missing":   {"mutate", `set: {spec: {any: {x: null}}}`, `{}`, `{}`},
	"removed-parent-is-null":      {"mutate", `set: {spec: {any: {x: {k: null}}}}`, `{any: {x: null}}`, `{"any":{"x":null}}`},
	"removed-parent-is-a-text":    {"mutate", `set: {spec: {any: {x: {k: null}}}}`, `{any: {x: text}}`, `{"any":{"x":"text"}}`},
	"value-is-null":               {"mutate", `set: {spec: {any: {x: {k: "${self.spec.any.none}"}}}}`, `{any: {x: {k: 1}, none: null}}`, `{"any":{"none":null,"x":{}}}`},
}

// declared returns an operator's configuration with all rules for a kind that policies guard, and for one that webhooks guard.
func declared(group string) string {
	out := "apiVersion: handwerk.dev/v1alpha1\nkind: Operator\nmetadata: {name: alike}\nresources:\n"
	for _, one := range []string{"policed/Policed/policy", "hooked/Hooked/webhook"} {
		part := strings.Split(one, "/")
		out += fmt.Sprintf("  - resource: %s.v1.%s\n    schema: {kind: %s, spec: {size: integer, color: string, map: \"map[string]integer\", any: object}}\n", part[0], group, part[1])
		for _, kind := range []string{"mutate", "validate"} {
			out += "    " + kind + ":\n"
			for _, name := range slices.Sorted(maps.Keys(answers)) {
				if rule := answers[name]; rule.kind == kind {
					out += fmt.Sprintf("      - {id: %s, enforce: %s, labels: {case: %s}, %s}\n", name, part[2], name, rule.rule)
				}
			}
		}
	}
	return out
}

// newAlike starts an operator with all rules, and waits until its last ones are in force: each server learns of them one by one.
func newAlike(t *testing.T, to *rest.Config, namespace string) *guard {
	t.Helper()
	g := &guard{group: strings.ToLower(fmt.Sprintf("r%d.example.com", rand.Int64())), warnings: &warnings{}}
	op, err := config.Parse("rules.yaml", []byte(declared(g.group)), handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	runOperator(t, op, to, namespace)
	mine := rest.CopyConfig(to)
	mine.WarningHandler, mine.QPS = g.warnings, -1
	if g.client, err = dynamic.NewForConfig(mine); err != nil {
		t.Fatal(err)
	}
	return g
}

// create sends a dry run of the creation of an object for a rule.
func (g *guard) create(t *testing.T, resource, rule string) (*unstructured.Unstructured, error) {
	t.Helper()
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte("spec: "+answers[rule].spec), &content); err != nil {
		t.Fatal(err)
	}
	o := g.object(resource, "a", content)
	o.SetLabels(map[string]string{"case": rule})
	return g.resource(resource).Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

// answer returns the answer to the creation of an object for a rule: its spec, or the refusal, with warnings.
func (g *guard) answer(t *testing.T, resource, rule string) string {
	t.Helper()
	g.warnings.take()
	got, err := g.create(t, resource, rule)
	out := told(got, err, g.warnings.take()...)
	if got != nil {
		spec, _ := json.Marshal(got.Object["spec"])
		out = strings.Replace(out, strings.Split(out, "\n")[0], string(spec), 1)
	}
	return failedText.ReplaceAllString(out, "an expression failed")
}

// failedText matches the texts about an expression that failed, which name it in two ways.
var failedText = regexp.MustCompile(`(?s)(evaluating|expression '|match conditions|setting|JSON Patch).*`)

// TestAnAnswerIsTheSameFromPolicyAndWebhook holds the answers to creations of objects, with code and reason.
func TestAnAnswerIsTheSameFromPolicyAndWebhook(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"the real server", "the sandbox"} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			to, namespace := plane.Config(), "default"
			if server == "the sandbox" {
				to = sandbox.New(t, sandbox.Options{}).Config()
			} else {
				namespace = plane.Namespace(t)
			}
			g := newAlike(t, to, namespace)
			var wrong []string
			_ = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, cluster.Patience, true, func(context.Context) (bool, error) {
				wrong = g.differences(t)
				return len(wrong) == 0, nil
			})
			for _, one := range wrong {
				t.Error(one)
			}
			const want = `composited variable "changes" fails to evaluate: composited variable "spec_size" fails to evaluate: no such key: map`
			if _, err := g.create(t, "policed", "value-reads-missing"); err == nil || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), `"op"`) {
				t.Errorf("a policy that fails says %v, want only the field at fault: %s", err, want)
			}
		})
	}
}

// differences returns the answers that are not as wanted.
func (g *guard) differences(t *testing.T) (out []string) {
	for _, rule := range slices.Sorted(maps.Keys(answers)) {
		for _, resource := range []string{"policed", "hooked"} {
			if got := g.answer(t, resource, rule); got != answers[rule].want {
				out = append(out, fmt.Sprintf("%s of %s: the answer is %s, want %s", rule, resource, got, answers[rule].want))
			}
		}
	}
	return out
}
