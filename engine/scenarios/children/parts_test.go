// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"os"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// pairPart is a part with two children. The second waits for the first.
const pairPart = `apiVersion: handwerk.dev/v1alpha1
kind: Part
parameters: {name: string | required=true, text: string | default=none}
apply:
  first: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${name}"}, data: {value: "${text}"}}
  second:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: "${children.first.metadata.name}-second"}
    data: {value: "${children.first.data.value}", before: "${current.?second.?data.?value.orValue('nothing')}"}
`

// TestEachUseOfAPartHasChildrenOfItsOwn holds that each use of a part has children of its own: they are made in their order,
// put back, and taken away with their use, and those of the other use stay.
func TestEachUseOfAPartHasChildrenOfItsOwn(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("pair.yaml", []byte(pairPart), 0o600); err != nil {
		t.Fatal(err)
	}
	use := func(name string) string {
		return `{id: ` + name + `, use: {file: pair.yaml, as: ` + name + `, with: {name: ` + name + `, text: "${string(self.spec.size)}"}}}`
	}
	both := []string{"ConfigMap back of back/back_first", "ConfigMap back-second of back/back_second", "ConfigMap front of front/front_first", "ConfigMap front-second of front/front_second"}
	scene.PlayVersionsWithConditions(t, func(v *scene.Versions) {
		v.Next(use("front"), use("back"))
		v.WantChildren(both...)
		v.Resize(2)
		v.Advance(time.Minute)
		for _, name := range []string{"front-second", "back-second"} {
			got := v.Get("configmaps.v1", "default", name)
			if value, before := scene.ValueAt(got, "data.value"), scene.ValueAt(got, "data.before"); value != "2" || before != "2" {
				t.Errorf("%s has the value %v and remembers %v, want 2 and 2", name, value, before)
			}
		}
		v.Forget()
		v.Process.Restart()
		v.Advance(time.Hour)
		v.Wrote()
		v.Next(use("back"))
		v.WantChildren(both[:2]...)
	})
}

// TestAnIncludeWhenKnowsTheLetsOfAHandlerThatUsesAPart holds that the handler's own lets, which the part does not know, decide.
func TestAnIncludeWhenKnowsTheLetsOfAHandlerThatUsesAPart(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("pair.yaml", []byte(pairPart), 0o600); err != nil {
		t.Fatal(err)
	}
	scene.PlayVersionsWithConditions(t, func(v *scene.Versions) {
		v.Next(`{id: app, let: {small: self.spec.size < 2}, includeWhen: small, use: {file: pair.yaml, with: {name: a}}}`)
		v.WantChildren("ConfigMap a of app/first", "ConfigMap a-second of app/second")
		v.Resize(2)
		v.Advance(time.Minute)
		v.WantChildren()
	})
}
