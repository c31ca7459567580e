// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/engine/observe/why"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAnAnswerShowsNoValueOfARelatedSecret holds that what handlers and machines read of Secrets is in no answer, neither as a value that
// decided nor in an error or in what happened: who may ask about an object may not read the Secrets that it names.
func TestAnAnswerShowsNoValueOfARelatedSecret(t *testing.T) {
	const open = `string(base64.decode(related.creds.data.one))`
	sets := func(when string) string {
		return `handlers: [{id: look, causes: [reconcile], when: "` + when + `", set: {status: {seen: "yes"}}}]`
	}
	for name, does := range map[string]string{
		"a condition":                        sets("related.creds.data.one == 'x'"),
		"one in the open":                    sets(open + " == 'x'"),
		"a part of it":                       sets(open + ".startsWith('x') || " + open + ".endsWith('y')"),
		"one that holds":                     sets("has(related.creds.data.one)"),
		"all values":                         sets("related.creds.data.exists(k, related.creds.data[k] == 'x')"),
		"the whole Secret":                   sets("related.creds == self"),
		"a map of values":                    sets("{'a': " + open + "}.a == 'x'"),
		"a list of values":                   sets("[" + open + "].map(v, v + '!').exists(v, v == 'x')"),
		"a condition that fails":             sets("int(" + open + ") > 3"),
		"a choice":                           sets("(self.spec.size == 1 ? " + open + " : 'x') == 'x'"),
		"a key":                              sets("self.spec[" + open + "] == 1"),
		"a machine's condition":              `machine: {states: [{name: Pending, transitions: [{to: Done, when: "` + open + ` == 'x'"}]}, {name: Done, terminal: true}]}`,
		"a machine's transition":             `machine: {states: [{name: Pending, transitions: [{to: Done, when: "` + open + ` != 'x'"}]}, {name: Done, terminal: true}]}`,
		"a handler that fails":               `handlers: [{id: look, log: {message: "${int(` + open + `)}"}}]`,
		"a child with a value, and its when": `handlers: [{id: keep, apply: {copy: {apiVersion: v1, kind: Secret, metadata: {name: copy}, stringData: {x: "${` + open + `}"}}}}, {id: look, causes: [reconcile], when: "children.copy.data.x == 'x'", set: {status: {seen: "yes"}}}]`,
	} {
		t.Run(name, func(t *testing.T) {
			text := `{apiVersion: handwerk.dev/v1alpha1, kind: Operator, metadata: {name: op}, resources: [{resource: foos.v1.example.com, related: [{name: creds, resource: secrets.v1, object: creds}], ` + does + `}]}`
			scene.PlayConfiguration(t, text, func(s *scene.Stage) {
				s.Update(scene.CRDs, "", "foos.example.com", scene.AddConditions)
				s.Create(`{apiVersion: v1, kind: Secret, metadata: {name: creds}, data: {one: aHVudGVyMg==}}`)
				inOps(s)
				s.Launch()
				s.Create(scene.Web)
				s.Settle()
				s.Resize(2)
				s.Settle()
				a, err := s.Process.Engine().Why(s.T.Context(), why.Question{Resource: "foo", Namespace: "default", Name: "web", History: true})
				if err != nil {
					s.T.Fatal(err)
				}
				data, err := json.MarshalIndent(a, "", " ")
				if err != nil {
					s.T.Fatal(err)
				}
				if len(a.Handlers) == 0 || len(a.History) == 0 {
					s.T.Errorf("the answer is about nothing: %s", data)
				}
				for _, value := range []string{"hunter2", "aHVudGVyMg", "hunter"} {
					if strings.Contains(string(data), value) {
						s.T.Errorf("the answer has %s: %s", value, data)
					}
				}
			})
		})
	}
}
