// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
)

// pair is a part with two children, which reads its own children in all ways, and a child of somebody else.
const pair = `apiVersion: handwerk.dev/v1alpha1
kind: Part
parameters: {name: string | required=true, text: string | required=true}
let: {made: "has(children.web.metadata) && children.?web.?metadata.hasValue() && has(children.all.metadata)"}
apply:
  web:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: "${name}"}
    data: {before: "${current.?web.?data.?before.orValue(text)}"}
  after:
    readyWhen: made
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${children['web'].metadata.name}-after"}
      data: {of: "${[{'web': self.metadata.name}].map(children, children.web)[0]}"}
`

// pairWrittenOut is the handler that a use of the part stands for. NAME is the name of its children.
const pairWrittenOut = `      - id: NAME
        let: {made: "has(children.NAME_web.metadata) && children.?NAME_web.?metadata.hasValue() && has(children.all.metadata)"}
        apply:
          NAME_web:
            apiVersion: v1
            kind: ConfigMap
            metadata: {name: "${'NAME'}"}
            data: {before: "${current.?NAME_web.?data.?before.orValue(children.web.metadata.name)}"}
          NAME_after:
            readyWhen: made
            template:
              apiVersion: v1
              kind: ConfigMap
              metadata: {name: "${children['NAME_web'].metadata.name}-after"}
              data: {of: "${[{'web': self.metadata.name}].map(children, children.web)[0]}"}
`

// TestAPartWithChildrenIsUsedTwice holds that with names of their own two uses of a part are two handlers, whose expressions
// mean the children of their own use, and in the values of parameters those of the file that gives them.
func TestAPartWithChildrenIsUsedTwice(t *testing.T) {
	const others = `      - id: others
        apply:
          web: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}}
          all: {apiVersion: v1, kind: ConfigMap, metadata: {name: all}}
`
	use := func(name string) string {
		return "      - id: " + name + "\n        use: {file: pair.yaml, as: " + name + ", with: {name: " + name + ", text: \"${children.web.metadata.name}\"}}\n"
	}
	got, err := config.Load([]string{written(t, map[string]string{"operator.yaml": using(others, use("front"), use("back")), "pair.yaml": pair})}, handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	out := func(name string) string { return strings.ReplaceAll(pairWrittenOut, "NAME", name) }
	want, err := config.Parse("operator.yaml", []byte(using(others, out("front"), out("back"))), handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(knownOf(want), knownOf(got), cmp.AllowUnexported(dsl.View{})); diff != "" {
		t.Errorf("-written out +with a part:\n%s", diff)
	}
	if action := got.Resources()[0].Handlers()[1].Known.Action; action != "use: pair.yaml as front" {
		t.Errorf("people read of it as %q", action)
	}
	names := func(op *dsl.Operator) (out []string) {
		for _, made := range op.Resources()[0].Makes {
			out = append(out, made.Name+": "+strings.Join(made.Needs, " "))
		}
		return out
	}
	if diff := cmp.Diff(names(want), names(got)); diff != "" {
		t.Errorf("children and what they need: -written out +with a part:\n%s", diff)
	}
}

// TestAPartOfAPartNamesItsChildren holds that names stand before those of the part within the part.
func TestAPartOfAPartNamesItsChildren(t *testing.T) {
	const outer = `apiVersion: handwerk.dev/v1alpha1
kind: Part
steps:
  - {name: one, use: {file: one.yaml, as: inner, with: {name: a}}}
  - name: two
    apply:
      last: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${children.inner_web.metadata.name}-last"}}
`
	const inner = `apiVersion: handwerk.dev/v1alpha1
kind: Part
parameters: {name: string | required=true}
apply:
  web: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${name}"}}
  next: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${children.web.metadata.name}-next"}}
`
	op, err := config.Load([]string{written(t, map[string]string{
		"operator.yaml": using(user("{file: outer.yaml, as: shop}")), "outer.yaml": outer, "one.yaml": inner,
	})}, handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, made := range op.Resources()[0].Makes {
		got = append(got, made.Name+" needs "+strings.Join(made.Needs, " "))
	}
	want := []string{"shop_inner_next needs shop_inner_web", "shop_inner_web needs ", "shop_last needs "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
