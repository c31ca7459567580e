// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// ruled is an operator with rules about Sites; the text is in the place of the rules.
func ruled(rules string) string { return scoped("{namespaces: ['*']}", rules) }

// scoped is an operator with a scope and rules.
func scoped(scope, rules string) string {
	return `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: sites}
scope: ` + scope + `
resources:
  - resource: sites.v1.example.com
    schema: {kind: Site, spec: {page: boolean, image: string}}
    handlers: [{id: log, log: {message: seen}}]
    validate: ` + rules
}

// TestAPlanNamesObjectsThatANewRuleWouldRefuse holds that people learn of them before the next change of such an object fails.
func TestAPlanNamesObjectsThatANewRuleWouldRefuse(t *testing.T) {
	const image = `{id: image, rule: "!has(self.spec.image) || self.spec.image.startsWith('nginx')", message: "no ${self.spec.image}"}`
	for _, tc := range []struct {
		name, before, after string
		want                []Refusal
	}{
		{"a new rule", "[{id: other, rule: 'true'}]", "[" + image + "]", []Refusal{{"Site", "shop", "docs", "sites/image", "no httpd:2"}}},
		{"a rule that was there", "[" + image + "]", "[" + image + "]", nil},
		{"a rule that has changed", "[{id: image, rule: 'true'}]", "[" + image + "]", []Refusal{{"Site", "shop", "docs", "sites/image", "no httpd:2"}}},
		{"a rule about creations alone", "[{id: other, rule: 'true'}]", "[" + strings.Replace(image, "{id", "{operations: [create], id", 1) + "]", nil},
		{"a rule that only warned before", "[" + strings.Replace(image, "{id", "{action: warn, id", 1) + "]", "[" + image + "]", []Refusal{{"Site", "shop", "docs", "sites/image", "no httpd:2"}}},
		{"a rule that was about creations alone", "[" + strings.Replace(image, "{id", "{operations: [create], id", 1) + "]", "[" + image + "]", []Refusal{{"Site", "shop", "docs", "sites/image", "no httpd:2"}}},
		{"a rule that was about others", "[" + image + "]\n    selector: {matchLabels: {tier: gold}}", "[" + image + "]", []Refusal{{"Site", "shop", "docs", "sites/image", "no httpd:2"}}},
		{"a rule that warns", "[{id: other, rule: 'true'}]", "[" + strings.Replace(image, "{id", "{action: warn, id", 1) + "]", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				after, functions := read(t, ruled(tc.after))
				before, _ := read(t, ruled(tc.before))
				in := &Input{Operator: after, Against: before, Functions: functions, Objects: Objects{List: objectsOf(t, site)}}
				report, err := Make(Job{For: time.Hour}, in)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, report.Refused); diff != "" {
					t.Errorf("refused (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestAPlanLeavesOutObjectsThatARuleDoesNotSee holds that only objects are named about which the API server asks the rule.
func TestAPlanLeavesOutObjectsThatARuleDoesNotSee(t *testing.T) {
	const never = `[{id: never, rule: "false", message: no}]`
	const space = "\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: shop, uid: s, labels: {team: web}}}\n"
	going := strings.Replace(site, "name: docs", "name: docs, deletionTimestamp: '2026-01-02T03:04:05Z', finalizers: [example.com/x]", 1)
	for name, tt := range map[string]struct {
		scope, objects string
		names          bool
	}{
		"all namespaces":                  {"{namespaces: ['*']}", site, true},
		"its namespace":                   {"{namespaces: [shop]}", site, true},
		"a glob of its namespace":         {"{namespaces: ['sh*']}", site, true},
		"another glob":                    {"{namespaces: ['te*']}", site, false},
		"another namespace":               {"{namespaces: [test]}", site, false},
		"all namespaces but a glob":       {"{namespaces: ['*', '!s*']}", site, false},
		"namespaces with a label":         {"{namespaceSelector: {matchLabels: {team: web}}}", site, true},
		"namespaces with another label":   {"{namespaceSelector: {matchLabels: {team: db}}}", site, false},
		"an object that is being deleted": {"{namespaces: ['*']}", going, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				op, functions := read(t, scoped(tt.scope, never))
				report, err := Make(Job{For: time.Hour}, &Input{Operator: op, Functions: functions, Objects: Objects{List: objectsOf(t, tt.objects+space)}})
				if err != nil {
					t.Fatal(err)
				}
				named := slices.ContainsFunc(report.Refused, func(r Refusal) bool { return r.Name == "docs" })
				if named != tt.names {
					t.Errorf("refused: %v, want docs in it: %v", report.Refused, tt.names)
				}
			})
		})
	}
}

// TestAPlanSelectsNamespacesByTheirOwnLabels holds that a rule about Namespaces sees the Namespaces that the selector selects, as in the
// API server.
func TestAPlanSelectsNamespacesByTheirOwnLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op, functions := read(t, `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: spaces}
admission:
  - resource: namespaces.v1
    namespaceSelector: {matchLabels: {team: web}}
    validate: [{id: never, rule: "false", message: no}]
`)
		objects := objectsOf(t, `
{apiVersion: v1, kind: Namespace, metadata: {name: shop, uid: s, labels: {team: web}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: test, uid: t, labels: {team: db}}}
`)
		report, err := Make(Job{For: time.Hour}, &Input{Operator: op, Functions: functions, Objects: Objects{List: objects}})
		if err != nil {
			t.Fatal(err)
		}
		want := []Refusal{{Kind: "Namespace", Name: "shop", Rule: "namespaces/never", Message: "no"}}
		if diff := cmp.Diff(want, report.Refused); diff != "" {
			t.Errorf("refused (-want +got):\n%s", diff)
		}
	})
}
