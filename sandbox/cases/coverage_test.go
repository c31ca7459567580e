// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/handlers"
)

// branching is an operator with each kind of branch.
const branching = restless + `
    handlers:
      - id: look
        when: "self.spec.size > 99 ? false : true"
        set: {status: {seen: "${self.spec.size > 2 ? 'big' : self.spec.size > 0 ? 'small' : 'none'}"}}
      - id: keep
        apply:
          one:
            includeWhen: self.spec.size > 0
            template: {apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {a: "${self.spec.?size.optMap(n, string(n)).orValue('none')}"}}
      - id: tell
        steps:
          - {name: first, when: self.spec.size > 7, log: {message: "${has(self.spec.size) ? 'it has' : 'it has not'}"}}
`

// TestCoverageHasTheBranchesOfExpressions holds that each side of ?:, includeWhen and when is a part, where the author has
// written it, and that these parts are counted only on request.
func TestCoverageHasTheBranchesOfExpressions(t *testing.T) {
	config := filepath.Join(t.TempDir(), "operator.yaml")
	if err := os.WriteFile(config, []byte(branching), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := parse("a_test.yaml", []byte(oneThing+"  steps: [{patch: {things/one: {spec: {size: 3}}}}]\nconfig: "+config+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	covered := func(branches bool) (ran, never []string) {
		suite := NewSuite(handlers.Standard())
		suite.branches = branches
		for _, failure := range suite.Test(t, f.Cases[0]) {
			t.Error(failure)
		}
		for _, part := range suite.Coverage() {
			if part.Times > 0 {
				ran = append(ran, part.Name)
			} else {
				never = append(never, part.Name)
			}
		}
		return ran, never
	}
	ran, never := covered(true)
	if diff := cmp.Diff([]string{
		"?: of handler things/look is false: self.spec.size > 2",
		"?: of handler things/look is false: self.spec.size > 99",
		"?: of handler things/look is true: self.spec.size > 0",
		"?: of handler things/look is true: self.spec.size > 2",
		"handler things/keep", "handler things/look", "handler things/tell",
		"includeWhen of handler things/keep is true: self.spec.size > 0",
		"when of handler things/look is true",
		"when of handler things/tell.first is false: self.spec.size > 7",
	}, ran); diff != "" {
		t.Errorf("what ran (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"?: of handler things/look is false: self.spec.size > 0",
		"?: of handler things/look is true: self.spec.size > 99",
		"?: of handler things/tell.first is false: has(self.spec.size)",
		"?: of handler things/tell.first is true: has(self.spec.size)",
		"includeWhen of handler things/keep is false: self.spec.size > 0",
		"when of handler things/look is false",
		"when of handler things/tell.first is true: self.spec.size > 7",
	}, never); diff != "" {
		t.Errorf("what never ran (-want +got):\n%s", diff)
	}
	if ran, never := covered(false); len(ran)+len(never) != 5 {
		t.Errorf("without branches %d parts are counted: %q %q", len(ran)+len(never), ran, never)
	}
}

// TestCoverageHasTheBranchesOfParts holds that a case runs an operator with a part, and that the branches of the part and of the
// values of its parameters are those of the handler that uses it.
func TestCoverageHasTheBranchesOfParts(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"operator.yaml": restless + "    handlers: [{id: look, use: {file: seen.yaml, with: {size: \"${self.spec.size > 5 ? 5 : self.spec.size}\"}}}]\n",
		"seen.yaml": "apiVersion: handwerk.dev/v1alpha1\nkind: Part\nparameters: {size: integer | required=true}\n" +
			"let: {big: size > 2}\nset: {status: {seen: \"${big ? 'big' : 'small'}\"}}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := parse("a_test.yaml", []byte(oneThing+"  steps: [{patch: {things/one: {spec: {size: 7}}}}]\n  expect: {objects: {things/one: {status: {seen: big}}}}\nconfig: "+filepath.Join(dir, "operator.yaml")+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	suite := NewSuite(handlers.Standard())
	suite.branches = true
	for _, failure := range suite.Test(t, f.Cases[0]) {
		t.Error(failure)
	}
	var never, ran []string
	for _, part := range suite.Coverage() {
		if part.Times == 0 {
			never = append(never, part.Name)
		} else {
			ran = append(ran, part.Name)
		}
	}
	if diff := cmp.Diff([]string{
		"?: of handler things/look is false: big", "?: of handler things/look is false: self.spec.size > 5",
		"?: of handler things/look is true: big", "?: of handler things/look is true: self.spec.size > 5", "handler things/look",
	}, ran); diff != "" || len(never) > 0 {
		t.Errorf("never %q, and what ran (-want +got):\n%s", never, diff)
	}
}

// TestCoverageHasRulesAboutRequests holds that rules are parts: those that the API server evaluates, and those of webhooks. A rule whose
// conditions never hold has not run.
func TestCoverageHasRulesAboutRequests(t *testing.T) {
	config := filepath.Join(t.TempDir(), "operator.yaml")
	if err := os.WriteFile(config, []byte(restless+`    handlers: [{id: look, log: {message: hi}}]
    validate:
      - {id: size, rule: self.spec.size < 9}
      - {id: note, rule: "self.spec.note != ''", when: has(self.spec.note)}
      - {id: hooked, rule: self.spec.size < 9, enforce: webhook}
      - {id: unhooked, rule: self.spec.size < 9, enforce: webhook, operations: [delete]}
    mutate:
      - {id: color, set: {labels: {color: blue}}}
      - {id: gone, when: self.spec.size > 7, set: {labels: {color: red}}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := parse("a_test.yaml", []byte(oneThing+"  steps: [{patch: {things/one: {spec: {size: 3}}}}]\nconfig: "+config+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	suite := NewSuite(handlers.Standard())
	for _, failure := range suite.Test(t, f.Cases[0]) {
		t.Error(failure)
	}
	got := map[string]bool{}
	for _, part := range suite.Coverage() {
		got[part.Name] = part.Times > 0
	}
	if diff := cmp.Diff(map[string]bool{
		"handler things/look": true, "rule things/size": true, "rule things/note": false, "rule things/hooked": true, "rule things/unhooked": false,
		"rule things/color": true, "rule things/gone": false,
	}, got); diff != "" {
		t.Errorf("what ran (-want +got):\n%s", diff)
	}
}
