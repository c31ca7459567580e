// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAnExpressionThatFailsIsAnErrorWhereverItStands walks the places of expressions with one that fails, because a function does not
// go with its value, and with one that needs a field of the object that is not set. N stands for the expression, a number. A line of the
// log, or the condition that cannot be worked out, says what has failed.
func TestAnExpressionThatFailsIsAnErrorWhereverItStands(t *testing.T) {
	const child = `apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}`
	handler := func(fields string) string {
		return `{resource: foos.v1.example.com, handlers: [{id: h, ` + fields + `}]}`
	}
	apply := func(options string) string {
		return handler(`apply: {a: {` + options + `, template: {` + child + `}}}`)
	}
	related := func(selects string) string {
		return `{resource: foos.v1.example.com, related: [{name: them, resource: configmaps.v1, ` + selects + `}],
			handlers: [{id: h, set: {status: {seen: "${size(related.them)}"}}}]}`
	}
	tests := map[string]struct{ resources, says string }{
		"when":                      {handler(`when: N > 0, log: {message: x}`), "evaluating when"},
		"when of a timer":           {handler(`every: 1m, when: N > 0, log: {message: x}`), "evaluating when"},
		"when of a delayed handler": {handler(`initialDelay: 1s, every: 1m, when: N > 0, log: {message: x}`), "evaluating when"},
		"at":                        {handler(`at: "timestamp(string(N))", log: {message: x}`), "evaluating at"},
		"runAgainAfter":             {handler(`runAgainAfter: "duration(string(N))", log: {message: x}`), "runAgainAfter"},
		"forEach":                   {handler(`forEach: "${[N]}", log: {message: x}`), "forEach"},
		"key":                       {handler(`forEach: "${[1]}", key: "${string(N)}", log: {message: x}`), "key"},
		"includeWhen":               {handler(`includeWhen: N > 0, apply: {a: {` + child + `}}`), "includeWhen"},
		"let":                       {handler(`let: {n: "N"}, log: {message: "${string(n)}"}`), "let n (at"},
		"with":                      {handler(`with: {n: 1}, log: {message: "${string(N + params.n)}"}`), "log.message"},
		"when of a step":            {handler(`steps: [{name: s, when: N > 0, log: {message: x}}]`), "when"},
		"log.values":                {handler(`log: {message: x, values: {a: "${N}"}}`), "log.values.a"},
		"event.message":             {handler(`event: {reason: X, message: "${string(N)}"}`), "event.message"},
		"event.reason":              {handler(`event: {reason: "${string(N)}", message: x}`), "event.reason"},
		"delete":                    {handler(`delete: "${N > 0 ? [self] : []}"`), "delete"},
		"includeWhen of a child":    {apply(`includeWhen: N > 0`), "includeWhen"},
		"forEach of a child":        {apply(`forEach: "${[N]}"`), "forEach"},
		"key of a child":            {apply(`forEach: "${[1]}", key: "${string(N)}"`), "key"},
		"readyWhen":                 {apply(`readyWhen: N > 0`), "readyWhen"},
		"template":                  {handler(`apply: {a: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: "${string(N)}"}}}`), "apply.a.data.a"},
		"name of a child":           {handler(`apply: {a: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${string(N)}"}}}`), "metadata.name"},
		"patch":                     {handler(`patch: {apiVersion: v1, kind: Namespace, metadata: {name: default, labels: {a: "${string(N)}"}}}`), "labels.a"},
		"when in set":               {handler(`set: {status: {a: 1}, when: {status.a: N > 0}}`), "evaluating set.when.status.a"},
		"a condition's when":        {handler(`set: {conditions: [{type: A, status: true, when: N > 0}]}`), "condition"},
		"transition":                {`{resource: foos.v1.example.com, machine: {states: [{name: One, transitions: [{to: Two, when: N > 0}]}, {name: Two, terminal: true}]}}`, "evaluating when"},
		"schedule":                  {`{resource: foos.v1.example.com, schedule: [{id: h, every: 1m, log: {message: "${string(OBJ)}"}}]}`, "log.message"},
		"rollout.readyWhen":         {handler(`apply: {a: {forEach: "${[1]}", rollout: {maxUnavailable: 1, readyWhen: N > 0}, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "a${key}"}, data: {a: "${self.spec.color}"}}}}`), "rollout.readyWhen"},
		"status of a condition":     {handler(`set: {conditions: [{type: A, status: "${N > 0}"}]}`), "ondition"},
		"reason of a condition":     {handler(`set: {conditions: [{type: A, status: true, reason: "${string(N)}"}]}`), "ondition"},
		"message of a condition":    {handler(`set: {conditions: [{type: A, status: true, message: "${string(N)}"}]}`), "ondition"},
		"includeWhen of a patch":    {handler(`includeWhen: N > 0, patch: {apiVersion: v1, kind: Namespace, metadata: {name: default, labels: {a: b}}}`), "includeWhen"},
		"an action of a state":      {`{resource: foos.v1.example.com, machine: {states: [{name: One, enter: {log: {message: "${string(N)}"}}, transitions: [{to: Two}]}, {name: Two, terminal: true}]}}`, "log.message"},
		"a field of the spec":       {handler(`set: {spec: {a: "${N}"}}`), "set.spec.a"},
		"a field of the status":     {handler(`set: {status: {a: "${N}"}}`), "set.status.a"},
		"object of a relation":      {related(`object: "${string(N)}"`), "evaluating object (at operator.yaml:1)"},
		"namespace of a relation":   {related(`namespace: "${string(N)}"`), "evaluating namespace (at operator.yaml:1)"},
		"selector of a relation":    {related(`selector: {matchLabels: {a: "${string(N)}"}}`), "evaluating selector (at operator.yaml:1)"},
		"where of a relation":       {related(`namespace: "*", where: N > 0`), "evaluating where (at operator.yaml:1)"},
		"key of an index":           {handler(`log: {message: x}`) + `], indexes: [{name: x, resource: foos.v1.example.com, key: "N", value: 1}`, "evaluating key"},
		"value of an index":         {handler(`log: {message: x}`) + `], indexes: [{name: x, resource: foos.v1.example.com, key: self.metadata.name, value: "N"}`, "evaluating value"},
		"when of an index":          {handler(`log: {message: x}`) + `], indexes: [{name: x, resource: foos.v1.example.com, when: N > 0, key: self.metadata.name, value: 1}`, "evaluating when"},
	}
	for name, tt := range tests {
		for why, n := range map[string][2]string{"a function": {"int(self.spec.color)", "type conversion error"}, "a missing field": {"self.spec.nope", "nope"}} {
			t.Run(name+", "+why, func(t *testing.T) {
				scene.PlayVersionsWithConditions(t, func(v *scene.Versions) {
					v.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: there, namespace: default}}`)
					v.NextResources(strings.NewReplacer("N", n[0], "OBJ", strings.ReplaceAll(n[0], "self", "objects[0]")).Replace(tt.resources))
					v.Advance(2 * time.Minute)
					lines := append(v.Log.Lines(), fmt.Sprint(v.Get(scene.Foos, "default", "web").Object["status"]))
					if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, tt.says) && strings.Contains(line, n[1]) }) {
						t.Errorf("no line has %q and %q:\n%s", tt.says, n[1], strings.Join(lines, "\n"))
					}
				})
			})
		}
	}
}
