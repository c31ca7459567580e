// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// markedObject is an object with marks of an operator and of each tool.
func markedObject() map[string]any {
	return map[string]any{
		"apiVersion": "example.com/v1", "kind": "Web", "spec": map[string]any{"size": int64(1)},
		"metadata": map[string]any{
			"name": "w",
			"labels": map[string]any{
				"team": "a", "app.kubernetes.io/instance": "shop", "app.kubernetes.io/managed-by": "Helm",
				"kustomize.toolkit.fluxcd.io/name": "apps", "helm.toolkit.fluxcd.io/name": "apps", "argocd.argoproj.io/instance": "shop",
				"applyset.kubernetes.io/part-of": "x", "shop.example.com/owner": "u", "other.handwerk.dev/owner": "u",
			},
			"annotations": map[string]any{
				"note": "mine", "kubectl.kubernetes.io/last-applied-configuration": "{}", "meta.helm.sh/release-name": "shop",
				"argocd.argoproj.io/tracking-id": "x", "kustomize.toolkit.fluxcd.io/checksum": "x", "deployment.kubernetes.io/revision": "1",
				"shop.example.com/state": `{"handwerk":1}`, "shop.example.com/children": "x", "shop.example.com/paused": "x",
				"other.handwerk.dev/applied": "handwerk:x", "foreign.example.org/state": `{"handwerk":1}`,
			},
			"finalizers":      []any{"mine.example.com/hold", "shop.example.com/finalizer", "other.handwerk.dev/finalizer", "resources-finalizer.argocd.argoproj.io"},
			"resourceVersion": "12", "generation": int64(3), "selfLink": "/apis/example.com/v1/webs/w",
			"managedFields": []any{map[string]any{"manager": "shop"}},
		},
	}
}

// marked are related objects with marks.
type marked struct{ object *unstructured.Unstructured }

func (m marked) Get(string) ([]*unstructured.Unstructured, error) {
	return []*unstructured.Unstructured{m.object}, nil
}

func (marked) Absent(string) string { return "" }

func (marked) Relations() []dsl.Relation {
	return []dsl.Relation{{Name: "one", One: true}, {Name: "many"}}
}

// TestCopiesOfMetadataHaveNoMarks holds that whatever takes metadata as a whole gets none of the marks, and that a mark
// that is named can be read.
func TestCopiesOfMetadataHaveNoMarks(t *testing.T) {
	annotations, labels := map[string]any{"note": "mine"}, map[string]any{"team": "a", "app.kubernetes.io/instance": "shop"}
	metadata := map[string]any{"name": "w", "labels": labels, "annotations": annotations, "finalizers": []any{"mine.example.com/hold"}}
	whole := map[string]any{"apiVersion": "example.com/v1", "kind": "Web", "spec": map[string]any{"size": int64(1)}, "metadata": metadata}
	const state, tracking = "shop.example.com/state", "argocd.argoproj.io/tracking-id"
	tests := map[string]struct {
		text string
		want any
	}{
		"annotations":                       {"self.metadata.annotations", annotations},
		"labels":                            {"self.metadata.labels", labels},
		"finalizers":                        {"self.metadata.finalizers", []any{"mine.example.com/hold"}},
		"metadata":                          {"self.metadata", metadata},
		"the object":                        {"self", whole},
		"in a list":                         {"[self]", []any{whole}},
		"in a map":                          {`{"x": self.metadata}`, map[string]any{"x": metadata}},
		"by a computed key":                 {`self["meta" + "data"].annotations`, annotations},
		"optional ones":                     {"self.metadata.?annotations.orValue({})", annotations},
		"bound ones":                        {"cel.bind(m, self.metadata, m.annotations)", annotations},
		"of a condition":                    {"true ? self.metadata.annotations : {}", annotations},
		"json()":                            {"json(self.metadata.annotations)", `{"note":"mine"}`},
		"yaml()":                            {"yaml(self.metadata.annotations)", "note: mine\n"},
		"hash()":                            {`hash(self.metadata.annotations) == hash({"note": "mine"})`, true},
		"merge()":                           {`merge(self.metadata.annotations, {"b": "c"})`, map[string]any{"note": "mine", "b": "c"}},
		"omit()":                            {`omit(self.metadata.annotations, ["a"])`, annotations},
		"a size":                            {"self.metadata.annotations.size() + size(self.metadata.labels) + size(self.metadata.finalizers)", int64(4)},
		"a loop":                            {"self.metadata.annotations.map(key, key)", []any{"note"}},
		"a loop over finalizers":            {"self.metadata.finalizers.filter(f, f != '')", []any{"mine.example.com/hold"}},
		"a loop that reads by its key":      {"self.metadata.annotations.map(key, self.metadata.annotations[key])", []any{"mine"}},
		"a test of all":                     {"self.metadata.annotations.all(key, key == 'note')", true},
		"a comparison":                      {`self.metadata.annotations == {"note": "mine"}`, true},
		"a child":                           {"children.web.metadata.annotations", annotations},
		"children by key":                   {"children.pods.map(pod, pod.metadata.labels)", []any{labels}},
		"all children":                      {"children.map(name, children[name]).size()", int64(2)},
		"a related object":                  {"related.one.metadata.annotations", annotations},
		"related objects":                   {"related.many.map(o, o.metadata.annotations)", []any{annotations}},
		"a variable":                        {"object.metadata.annotations", annotations},
		"objects of a schedule":             {"objects.map(o, o.metadata.annotations)", []any{annotations}},
		"children before their apply":       {"current.web.metadata.annotations", annotations},
		"a mark that is named":              {"self.metadata.annotations['" + tracking + "']", "x"},
		"one beside a copy":                 {`[self.metadata.annotations["` + state + `"], json(self.metadata.annotations)]`, []any{`{"handwerk":1}`, `{"note":"mine"}`}},
		"one that is asked for":             {"'" + state + "' in self.metadata.annotations", true},
		"a label that is asked for":         {"has(self.metadata.labels.team) && self.metadata.labels[?'argocd.argoproj.io/instance'].orValue('') == 'shop'", true},
		"a finalizer that is asked for":     {"'shop.example.com/finalizer' in self.metadata.finalizers", true},
		"one behind a bound map":            {"cel.bind(m, self.metadata, m.annotations['" + tracking + "'])", "x"},
		"one of a related object in a loop": {"related.many.map(o, o.metadata.annotations['" + tracking + "'])", []any{"x"}},
		"a digest of all":                   {`hash(self.metadata) == hash(omit(self.metadata, ["generation"]))`, true},
		"a version that is named":           {"self.metadata.resourceVersion + string(self.metadata.generation)", "123"},
		"managedFields that are named":      {"self.metadata.managedFields[0].manager", "shop"},
	}
	c, err := compiler(t).With("object", "objects", expr.Current)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before := markedObject()
			object := &unstructured.Unstructured{Object: before}
			s := subject()
			s.Object, s.Prefix = object, "shop.example.com"
			s.Children = family{all: []dsl.ChildObject{{ChildSpec: dsl.ChildSpec{Name: "web"}, Object: object}, {ChildSpec: dsl.ChildSpec{Name: "pods", Key: "a"}, Object: object}}}
			s.Made, s.Related = []shape.NamedChild{{Name: "web"}, {Name: "pods", List: true}}, marked{object}
			vars := map[string]any{"object": before, "objects": []any{before}, expr.Current: map[string]any{"web": before}}
			program, err := c.Value(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			got, err := program.Eval(expr.Scope{Subject: s, Vars: vars})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.text, diff)
			}
			if diff := cmp.Diff(markedObject(), before); diff != "" {
				t.Errorf("the object was changed (-was +is):\n%s", diff)
			}
		})
	}
}
