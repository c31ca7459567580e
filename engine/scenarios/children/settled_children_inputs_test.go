// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestWhatATemplateReadsIsWhatItsChildrenAreMadeFrom has templates of many children read one thing each, in unusual ways. When that changes,
// all children follow, though they count as settled.
func TestWhatATemplateReadsIsWhatItsChildrenAreMadeFrom(t *testing.T) {
	set := func(value any, path ...string) func(*scene.Stage) {
		return func(s *scene.Stage) { s.Set(value, path...) }
	}
	unset := func(path ...string) func(*scene.Stage) {
		return func(s *scene.Stage) {
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, path...) })
		}
	}
	tests := map[string]struct {
		reads        string
		first, after func(*scene.Stage)
		// want is what each child has then.
		want string
	}{
		"a label": {reads: "self.metadata.?labels.?team.orValue('none')", after: set("a", "metadata", "labels", "team"), want: "a"},
		"how many annotations there are": {
			reads: "string(has(self.metadata.annotations) ? size(self.metadata.annotations) : 0)", after: set("a", "metadata", "annotations", "n"), want: "1",
		},
		"a field of the status":          {reads: "self.?status.?phase.orValue('none')", after: set("Up", "status", "phase"), want: "Up"},
		"whether a field is there":       {reads: "has(self.spec.extra) ? 'yes' : 'no'", after: set("", "spec", "extra"), want: "yes"},
		"whether it is there any more":   {reads: "has(self.spec.extra) ? 'yes' : 'no'", first: set("", "spec", "extra"), after: unset("spec", "extra"), want: "no"},
		"the type of a value":            {reads: "type(self.spec.?extra.orValue(1)) == string ? 'string' : 'other'", after: set("1", "spec", "extra"), want: "string"},
		"an entry with a computed key":   {reads: "self.spec.?table[?self.spec.color].orValue('none')", first: set(map[string]any{"red": "r", "blue": "b"}, "spec", "table"), after: set("blue", "spec", "color"), want: "b"},
		"an element of a list":           {reads: "self.spec.?list[?0].orValue('none')", first: set([]any{"a", "b"}, "spec", "list"), after: set([]any{"b", "a"}, "spec", "list"), want: "b"},
		"a macro over a map":             {reads: "self.spec.?table.orValue({}).map(k, k).join('')", after: set(map[string]any{"k": "v"}, "spec", "table"), want: "k"},
		"a macro whose variable is item": {reads: "[self.spec.color].map(item, item).join('')", after: set("blue", "spec", "color"), want: "blue"},
		"a part of the object by a name": {reads: "cel.bind(s, self.spec, s.color)", after: set("blue", "spec", "color"), want: "blue"},
		"the object with a leading dot":  {reads: ".self.spec.color", after: set("blue", "spec", "color"), want: "blue"},
		"letters that have a field as seed": {
			reads: "random(4, self.spec.color) == random(4, 'blue') ? 'blue' : 'other'", after: set("blue", "spec", "color"), want: "blue",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			playMany(t, tt.reads, func(s *scene.Stage) {
				if tt.first != nil {
					tt.first(s)
					s.Advance(time.Second)
				}
				settleMany(s)
				tt.after(s)
				s.Advance(time.Second)
				for _, o := range s.List(scene.ConfigMaps, "default") {
					if got := scene.ValueAt(o, "data.of"); got != tt.want {
						t.Fatalf("%s has %v, want %s", o.GetName(), got, tt.want)
					}
				}
			})
		})
	}
}

// TestChildrenThatDependOnTheTimeAreMadeInEachPass holds that such children do not count as settled, though they are the same for an hour.
func TestChildrenThatDependOnTheTimeAreMadeInEachPass(t *testing.T) {
	playMany(t, "string(now.getHours())", func(s *scene.Stage) {
		settleMany(s)
		before := scene.ValueAt(s.Get(scene.ConfigMaps, "default", "part-3"), "data.of")
		s.Advance(time.Hour)
		spoilOne(s)
		s.Advance(time.Second)
		if now := scene.ValueAt(s.Get(scene.ConfigMaps, "default", "part-3"), "data.of"); now == before {
			t.Errorf("it has %v, as an hour ago", now)
		}
	})
}

// playMany plays with a Foo that has a ConfigMap for each of its ten items. Reads is the expression of its field of.
func playMany(t *testing.T, reads string, play func(*scene.Stage)) {
	t.Helper()
	scene.PlayYAML(t, fmt.Sprintf(`{resource: foos.v1.example.com, owns: [configmaps.v1], handlers: [{id: app, apply: {
		part: {forEach: "${self.spec.items}", key: "${item}", template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "part-${item}"},
			data: {of: %q, size: "${string(self.spec.?size.orValue(0))}"}}}}}]}`, "${"+reads+"}"), func(s *scene.Stage) {
		s.Launch()
		s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {color: red, items: [` + strings.Join(strings.Split("0123456789", ""), ", ") + `]}}`)
		s.Advance(time.Second)
		play(s)
	})
}

// settleMany has the children looked at until they count as settled: the first look notes what they were made from.
func settleMany(s *scene.Stage) {
	s.T.Helper()
	for range 2 {
		spoilOne(s)
		s.Advance(time.Second)
	}
	s.Forget()
}

// spoilOne has the children looked at: somebody changes one of them.
func spoilOne(s *scene.Stage) {
	s.T.Helper()
	s.Update(scene.ConfigMaps, "default", "part-5", scene.SetField("spoilt", "data", "of"))
}
