// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
)

// TestAHandlerNeedsWhatItsActionsDoAndWhatItSays looks at what is known of a handler's needs, as
// "verbs resource; …", with a question mark where there may be more.
func TestAHandlerNeedsWhatItsActionsDoAndWhatItSays(t *testing.T) {
	tests := map[string]struct {
		handler, want string
	}{
		"a line in the log takes nothing":                           {`log: {message: m}`, ""},
		"an Event takes what the engine needs anyhow":               {`event: {reason: R, message: m}`, ""},
		"status and conditions are the status":                      {`set: {status: {a: b}, conditions: [{type: Ready, status: "True"}]}`, "patch self/status"},
		"labels are the object":                                     {`set: {labels: {a: b}}`, "patch self"},
		"both are both":                                             {`set: {status: {a: b}, annotations: {a: b}}`, "patch self/status; patch self"},
		"deleting itself":                                           {`delete: "${self}"`, "delete self"},
		"deleting a child":                                          {`delete: "${children.config}"`, "delete children.config"},
		"deleting what is related, by the object":                   {`delete: "${related.peers.filter(p, p.metadata.name == self.spec.peer)}"`, "delete related.peers"},
		"a function that says what it needs":                        {`call: known.Func`, "get pods"},
		"a function that says that it needs nothing":                {`call: nothing.Func`, ""},
		"a function with unknown needs":                             {`call: unknown.Func`, "?"},
		"a function whose needs the handler declares":               {`{call: unknown.Func, needs: [{resource: pods, verbs: [list]}]}`, "list pods"},
		"a function that computes its parameters":                   {`{call: known.Func, with: {a: "${self.spec.a}"}}`, "get pods"},
		"what both say":                                             {`{call: known.Func, needs: [{resource: pods, verbs: [list]}]}`, "list pods; get pods"},
		"steps need what each of them does":                         {`steps: [{log: {message: m}}, {set: {labels: {a: b}}}, {call: known.Func}]`, "patch self; get pods"},
		"steps without needs":                                       {`steps: [{log: {message: m}}, {event: {reason: R, message: m}}]`, ""},
		"steps with unknown needs":                                  {`steps: [{log: {message: m}}, {call: unknown.Func}]`, "?"},
		"steps with unknown needs beside known ones":                {`steps: [{set: {labels: {a: b}}}, {call: unknown.Func}]`, "patch self?"},
		"steps with needs that the handler declares":                {`{steps: [{set: {labels: {a: b}}}, {call: unknown.Func}], needs: [{resource: pods, verbs: [list]}]}`, "list pods; patch self"},
		"children of a kind":                                        {`apply: {a: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}`, "patch self/status; get,create,patch,delete ConfigMap of v1; update self/finalizers"},
		"children that stay":                                        {`apply: {a: {onDelete: orphan, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}}`, "patch self/status; get,create,patch ConfigMap of v1; update self/finalizers; patch self"},
		"children without an owner reference":                       {`apply: {a: {ownership: labelled, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}}`, "patch self/status; get,create,patch,delete ConfigMap of v1; patch self"},
		"children that are kept for the next owner":                 {`apply: {a: {onDelete: retain, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}}`, "patch self/status; get,create,patch ConfigMap of v1; patch self"},
		"children that are forgotten":                               {`apply: {a: {ownership: none, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}}`, "patch self/status; get,create,patch ConfigMap of v1"},
		"of children of a kind that is worked out no more is known": {`apply: {a: {apiVersion: v1, kind: "${self.spec.kind}", metadata: {name: a}}}`, "patch self/status; update self/finalizers?"},
	}
	registry := handlers.Standard()
	nothing := func(context.Context, *dsl.Request) error { return nil }
	with := struct {
		A string `json:"a"`
	}{}
	registry.Function(dsl.Function{Name: "known.Func", Func: nothing, Params: with, Needs: []dsl.Need{dsl.MustParseNeed("get", "pods")}})
	registry.Function(dsl.Function{Name: "nothing.Func", Func: nothing, Needs: []dsl.Need{}})
	registry.Function(dsl.Function{Name: "unknown.Func", Func: nothing})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			body := test.handler
			if inner, braced := strings.CutPrefix(body, "{"); braced {
				body = strings.TrimSuffix(inner, "}")
			}
			text := fmt.Sprintf(`{apiVersion: handwerk.dev/v1alpha1, kind: Operator, metadata: {name: demo}, resources: [{resource: foos.v1.example.com,
				owns: [configmaps.v1], related: [{name: peers, resource: pods.v1}], handlers: [
					{id: other, apply: {config: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}}, {id: one, %s}]}]}`, body)
			op, err := config.Parse("operator.yaml", []byte(text), registry)
			if err != nil {
				t.Fatal(err)
			}
			if got := needsOf(op.Resources()[0].Handlers()[1]); got != test.want {
				t.Errorf("it needs %q, want %q", got, test.want)
			}
		})
	}
}

func needsOf(h *dsl.Handler) string {
	var parts []string
	for _, n := range h.Needs {
		parts = append(parts, strings.Join(n.Verbs, ",")+" "+n.Text())
	}
	out := strings.Join(parts, "; ")
	if !h.Declared {
		out += "?"
	}
	return out
}
