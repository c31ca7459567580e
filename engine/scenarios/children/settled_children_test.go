// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// manyItems makes a ConfigMap for each item, and one more that reads something else.
const manyItems = `{resource: foos.v1.example.com, owns: [configmaps.v1], related: [{name: shared, resource: secrets.v1, object: shared}], handlers: [
	{id: app, apply: {
		part: {forEach: "${self.spec.items}", key: "${item.name}", template: {apiVersion: v1, kind: ConfigMap,
			metadata: {name: "part-${item.name}"}, data: {color: "${self.spec.color}", size: "${string(item.size)}", at: "${string(index)}"}}},
		more: {forEach: "${self.spec.items}", key: "${item.name}", template: {apiVersion: v1, kind: ConfigMap,
			metadata: {name: "more-${item.name}"}, data: {kind: "${related.shared.?type.orValue('none')}", of: "${children.part[0].data.color}"}}}}}]}`

// TestChildrenThatAreSettledFollowWhatTheyAreMadeFrom holds that many children, which are not rendered again while all that they are
// made from is as it was, are as their templates want them whatever changes, and that nothing is written for the others.
func TestChildrenThatAreSettledFollowWhatTheyAreMadeFrom(t *testing.T) {
	items := func(count int, size int) (out []any) {
		for n := range count {
			out = append(out, map[string]any{"name": fmt.Sprintf("n%02d", n), "size": int64(n)})
		}
		out[count/2].(map[string]any)["size"] = int64(size)
		return out
	}
	patched := func(names ...string) (out []string) {
		for _, name := range names {
			out = append(out, "patch configmaps default/"+name)
		}
		return out
	}
	all := func(prefix string, but ...string) (out []string) {
		for n := range 12 {
			if name := fmt.Sprintf("%s-n%02d", prefix, n); !strings.Contains(strings.Join(but, " "), name) {
				out = append(out, name)
			}
		}
		return out
	}
	changes := func(name, key, value string) func(s *scene.Stage) {
		return func(s *scene.Stage) {
			s.Update(scene.ConfigMaps, "default", name, func(o *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(o.Object, value, "data", key)
			})
		}
	}
	tests := map[string]struct {
		change func(s *scene.Stage)
		wrote  []string
	}{
		"somebody changes one":            {changes("part-n03", "color", "blue"), patched("part-n03")},
		"somebody deletes one":            {func(s *scene.Stage) { s.Delete(scene.ConfigMaps, "default", "part-n03") }, patched("part-n03")},
		"somebody adds to one":            {changes("part-n03", "beside", "x"), nil},
		"an item changes":                 {func(s *scene.Stage) { s.Set(items(12, 77), "spec", "items") }, patched("part-n06")},
		"an item goes":                    {func(s *scene.Stage) { s.Set(items(13, 6)[:11], "spec", "items") }, []string{"delete configmaps default/part-n11", "delete configmaps default/more-n11"}},
		"an item comes":                   {func(s *scene.Stage) { s.Set(items(13, 6), "spec", "items") }, patched("part-n12", "more-n12")},
		"a field changes that all read":   {func(s *scene.Stage) { s.Set("blue", "spec", "color") }, patched(append(all("part"), all("more")...)...)},
		"a field changes that none reads": {func(s *scene.Stage) { s.Resize(7) }, nil},
		"a related object changes": {func(s *scene.Stage) {
			s.Create(`{apiVersion: v1, kind: Secret, metadata: {name: shared}, type: example.com/x}`)
		}, patched(all("more")...)},
		"the order of the items changes": {func(s *scene.Stage) {
			list := items(12, 6)
			list[0], list[1] = list[1], list[0]
			s.Set(list, "spec", "items")
		}, patched("part-n00", "part-n01")},
		"one is deleted, and another one is in its place": {func(s *scene.Stage) {
			s.HoldWatches(scene.ConfigMaps)
			s.Delete(scene.ConfigMaps, "default", "part-n03")
			s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: part-n03}, data: {color: red, size: "3", at: "3"}}`)
			s.ReleaseWatches(scene.ConfigMaps)
		}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayYAML(t, manyItems, func(s *scene.Stage) {
				s.Launch()
				s.Create(map[string]any{"apiVersion": "example.com/v1", "kind": "Foo", "metadata": map[string]any{"name": "web"}, "spec": map[string]any{"color": "red", "items": items(12, 6)}})
				s.Advance(time.Second)
				for range 2 { // the first time notes what the children were made from
					changes("part-n05", "color", "blue")(s)
					s.Advance(time.Second)
				}
				s.Forget()
				tt.change(s)
				s.Advance(time.Second)
				var wrote []string
				for _, w := range s.Writes() {
					refused := w.Code >= 400 // as is a child that is made again where the reconcile has seen its deletion, and not yet what is in its place
					if text := w.String(); !refused && strings.Contains(text, " configmaps ") {
						wrote = append(wrote, text)
					}
				}
				slices.Sort(wrote)
				slices.Sort(tt.wrote)
				if diff := cmp.Diff(tt.wrote, wrote); diff != "" {
					t.Errorf("writes of children (-want +got):\n%s", diff)
				}
			})
		})
	}
}
