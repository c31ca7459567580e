// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// settingsPart is a part with two children. One needs the other.
const settingsPart = `
apiVersion: handwerk.dev/v1alpha1
kind: Part
parameters: {name: string | required=true, text: string | default=none}
apply:
  main:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: "${name}"}
    data: {text: "${text}"}
  copy:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: "${children.main.metadata.name}-copy"}
    data: {text: "${children.main.data.text}"}
`

// settingsOperator is an operator whose Apps use the part in handlers.
func settingsOperator(t *testing.T, handlersText string) *dsl.Operator {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"operator.yaml": "apiVersion: handwerk.dev/v1alpha1\nkind: Operator\nmetadata: {name: op}\nresources:\n- resource: apps.v1.example.com\n  handlers:\n" + handlersText,
		"settings.yaml": settingsPart,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	op, err := config.Load([]string{filepath.Join(dir, "operator.yaml")}, handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	return op
}

// settings returns the ConfigMaps that exist: their uids, and their texts with their marks.
func settings(c *kit.Cluster) (uids, texts map[string]string) {
	c.Settle()
	uids, texts = map[string]string{}, map[string]string{}
	for _, o := range c.List("configmaps.v1", "default") {
		text, _, _ := unstructured.NestedString(o.Object, "data", "text")
		texts[o.GetName()] = text + " " + o.GetAnnotations()["op.handwerk.dev/child"]
		uids[o.GetName()] = string(o.GetUID())
	}
	return uids, texts
}

const frontUse, backUse = `
  - id: front
    use: {file: settings.yaml, as: front, with: {name: front, text: "${self.spec.front}"}}
`, `
  - id: back
    use: {file: settings.yaml, as: back, with: {name: back, text: "${children.front_copy.data.text}!"}}
`

// TestAUseThatGetsANameKeepsItsChildren holds that a second use of a part costs the first one nothing.
func TestAUseThatGetsANameKeepsItsChildren(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: apps, Kind: "App"})
		p := c.Start(settingsOperator(t, strings.Replace(frontUse, "as: front, ", "", 1)))
		c.Create("{apiVersion: example.com/v1, kind: App, metadata: {name: me, namespace: default}, spec: {front: a}}")
		before, texts := settings(c)
		if want := map[string]string{"front": "a front/main", "front-copy": "a front/copy"}; !cmp.Equal(want, texts) {
			t.Errorf("without a name (-want +got):\n%s", cmp.Diff(want, texts))
		}
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
		c.Start(settingsOperator(t, frontUse))
		c.Advance(time.Minute)
		after, texts := settings(c)
		if want := map[string]string{"front": "a front/front_main", "front-copy": "a front/front_copy"}; !cmp.Equal(want, texts) || !cmp.Equal(before, after) {
			t.Errorf("with a name (-want +got):\n%s%s", cmp.Diff(want, texts), cmp.Diff(before, after))
		}
	})
}

// TestUsesThatMeanOneObjectAreACollision has names that only the object shows.
func TestUsesThatMeanOneObjectAreACollision(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: apps, Kind: "App"})
		c.Start(settingsOperator(t, strings.Replace(frontUse, "name: front", `name: "${self.spec.front}"`, 1)+
			strings.NewReplacer("name: back", `name: "${self.spec.back}"`, "text: \"${children.front_copy.data.text}!\"", "text: other").Replace(backUse)))
		c.Create("{apiVersion: example.com/v1, kind: App, metadata: {name: me, namespace: default}, spec: {front: a, back: a}}")
		c.Advance(time.Minute)
		_, texts := settings(c)
		if want := map[string]string{"a": "a front/front_main", "a-copy": "a front/front_copy"}; !cmp.Equal(want, texts) {
			t.Errorf("-want +got:\n%s", cmp.Diff(want, texts))
		}
		var notes []string
		for _, event := range c.Events() {
			if event.Type == "Warning" {
				notes = append(notes, event.Action+": "+event.Reason+": "+event.Note)
			}
		}
		want := []string{"back: NameCollision: ConfigMap default/a: handler front keeps it, too, and otherwise: give each a child of its own"}
		if diff := cmp.Diff(want, notes); diff != "" {
			t.Errorf("the Events (-want +got):\n%s", diff)
		}
	})
}

// TestEachEntryOfAHandlerHasThePartsChildrenOfItsOwn has children that are called after others of their entry.
func TestEachEntryOfAHandlerHasThePartsChildrenOfItsOwn(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: apps, Kind: "App"})
		op := settingsOperator(t, `
  - id: each
    forEach: ${self.spec.names}
    use: {file: settings.yaml, as: each, with: {name: "${item}"}}
`)
		if faults, warnings, err := config.Check(op); err != nil || len(faults)+len(warnings) > 0 {
			t.Errorf("the check finds %v, %v, %v", faults, warnings, err)
		}
		c.Start(op)
		c.Create("{apiVersion: example.com/v1, kind: App, metadata: {name: me, namespace: default}, spec: {names: [a, b]}}")
		c.Advance(time.Minute)
		c.Update(apps, "default", "me", func(o *unstructured.Unstructured) { o.Object["spec"] = map[string]any{"names": []any{"b"}} })
		c.Advance(time.Minute)
		want := map[string]string{"b": "none each/each_main/b", "b-copy": "none each/each_copy/b"}
		if _, texts := settings(c); !cmp.Equal(want, texts) {
			t.Errorf("-want +got:\n%s", cmp.Diff(want, texts))
		}
	})
}
