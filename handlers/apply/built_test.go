// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/dsl/shape"
	"github.com/handwerk-dev/handwerk/dsl/source"
	"github.com/handwerk-dev/handwerk/handlers/apply"
)

func TestWhatGoesWithTheHandler(t *testing.T) {
	configMap := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	tests := map[string]struct {
		config   string
		owns     []schema.GroupVersionKind
		children []shape.NamedChild
		causes   string
		old      bool
	}{
		"children that are owned": {
			config:   "{b: {" + head + "{name: b}}, a: {apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}, c: {" + head + "{name: c}}}",
			owns:     []schema.GroupVersionKind{deployment, configMap},
			children: []shape.NamedChild{{Name: "a", Kind: deployment, Object: "Deployment.apps a"}, {Name: "b", Kind: configMap, Object: "ConfigMap b"}, {Name: "c", Kind: configMap, Object: "ConfigMap c"}},
			causes:   "create",
		},
		"one that needs others": {
			config: "{a: {" + head + "{name: a}, data: {x: '${children.c.data.x}', y: '${children.b.data.x}'}}, b: {" + head + "{name: b}}, c: {" + head + "{name: c}}}",
			owns:   []schema.GroupVersionKind{configMap},
			children: []shape.NamedChild{
				{Name: "a", Kind: configMap, Object: "ConfigMap a", Needs: []string{"b", "c"}}, {Name: "b", Kind: configMap, Object: "ConfigMap b"}, {Name: "c", Kind: configMap, Object: "ConfigMap c"},
			},
			causes: "create",
		},
		"several of a name": {
			config:   "{a: {forEach: [x], template: {" + head + "{name: '${item}'}}}}",
			owns:     []schema.GroupVersionKind{configMap},
			children: []shape.NamedChild{{Name: "a", Kind: configMap, List: true}},
			causes:   "create",
		},
		"a kind that is worked out": {
			config:   "{a: {apiVersion: v1, kind: '${self.spec.kind}', metadata: {name: a}}}",
			children: []shape.NamedChild{{Name: "a"}},
			causes:   "create",
		},
		"an object that is not owned": {
			config:   "{a: {ownership: none, template: {" + head + "{name: a}}}}",
			children: []shape.NamedChild{{Name: "a", Kind: configMap, Object: "ConfigMap a", Forgotten: true}},
			causes:   "create",
		},
		"one without an owner reference": {
			config:   "{a: {ownership: labelled, template: {" + head + "{name: a}}}}",
			owns:     []schema.GroupVersionKind{configMap},
			children: []shape.NamedChild{{Name: "a", Kind: configMap, Object: "ConfigMap a"}},
			causes:   "delete create",
		},
		"one that goes in order": {
			config:   "{a: {deleteOrder: reverse, template: {" + head + "{name: a}}}}",
			owns:     []schema.GroupVersionKind{configMap},
			children: []shape.NamedChild{{Name: "a", Kind: configMap, Object: "ConfigMap a"}},
			causes:   "delete create",
		},
		"one that is to stay, and has an owner reference": {
			config:   "{a: {onDelete: orphan, template: {" + head + "{name: a}}}}",
			owns:     []schema.GroupVersionKind{configMap},
			children: []shape.NamedChild{{Name: "a", Kind: configMap, Object: "ConfigMap a"}},
			causes:   "delete create",
		},
		"one that is retained has none": {
			config:   "{a: {onDelete: retain, template: {" + head + "{name: a}}}}",
			owns:     []schema.GroupVersionKind{configMap},
			children: []shape.NamedChild{{Name: "a", Kind: configMap, Object: "ConfigMap a"}},
			causes:   "create",
		},
		"an expression that looks back": {
			config:   "{a: {" + head + "{name: a}, data: {old: '${old.spec.x}'}}}",
			owns:     []schema.GroupVersionKind{configMap},
			children: []shape.NamedChild{{Name: "a", Kind: configMap, Object: "ConfigMap a"}},
			causes:   "create",
			old:      true,
		},
		"a predicate that looks back": {
			config:   "{a: {includeWhen: size(diff) == 0, template: {" + head + "{name: a}}}}",
			owns:     []schema.GroupVersionKind{configMap},
			children: []shape.NamedChild{{Name: "a", Kind: configMap}},
			causes:   "create",
			old:      true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			built, err := build(t, test.config, actions.Build{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.owns, built.Owns); diff != "" {
				t.Errorf("owns (-want +got):\n%s", diff)
			}
			for i := range test.children {
				test.children[i].Maker = "h" // the id of the handler
			}
			for i := range built.Children {
				built.Children[i].Sets = nil // TestWhatATemplateSets has these
			}
			if diff := cmp.Diff(test.children, built.Children); diff != "" {
				t.Errorf("children (-want +got):\n%s", diff)
			}
			op := dsl.New("x")
			op.Resource("foos.v1.example.com", func(r *dsl.Resource) {
				r.OwnsKind(built.Owns...)
				r.Add(dsl.Handler{ID: "h", Causes: []dsl.Cause{dsl.Create}, Func: built.Func, Known: dsl.Known{Brings: built.Brings}, NoOld: built.NoOld})
			})
			if err := op.Validate(); err != nil {
				t.Error(err)
			}
			for _, h := range op.Handlers() {
				if got := strings.Trim(fmt.Sprint(h.Causes), "[]"); got != test.causes || h.NoOld == test.old {
					t.Errorf("causes %s, without old %v, want %s, %v", got, h.NoOld, test.causes, !test.old)
				}
			}
		})
	}
}

// TestWhatATemplateSets holds which fields of a child its template is known to set.
func TestWhatATemplateSets(t *testing.T) {
	always := "apiVersion kind metadata.name"
	for name, tt := range map[string]struct{ template, want string }{
		"fields that are written":       {head + "{name: a, labels: {app: x, of: '${self.metadata.name}'}}, data: {x: '1', y: '${self.spec.y}'}", "apiVersion data.x data.y kind metadata.labels.app metadata.labels.of metadata.name"},
		"a map that is computed":        {head + "{name: a}, data: '${self.spec.data}'", "apiVersion data kind metadata.name"},
		"a key that is computed":        {head + "{name: a}, data: {x: '1', '${self.metadata.name}': '1'}", "apiVersion data kind metadata.name"},
		"a list":                        {head + "{name: a}, spec: {list: [{x: '1'}]}", always + " spec.list"},
		"an empty map":                  {head + "{name: a}, spec: {}", always + " spec"},
		"what the server has elsewhere": {"apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {x: '1'}", always + " stringData.x data.x"},
		"an object that is computed":    {"template: '${self.spec.object}'", ""},
		"metadata that are computed":    {"apiVersion: v1, kind: ConfigMap, metadata: '${self.spec.metadata}'", "apiVersion kind metadata"},
		"a field that may be left out":  {head + "{name: a}, data: {x: '${self.spec.?x}'}", "apiVersion data.x kind metadata.name"},
	} {
		t.Run(name, func(t *testing.T) {
			built, err := build(t, "{a: {"+tt.template+"}}", actions.Build{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, path := range built.Children[0].Sets {
				got = append(got, dsl.Path(path).String())
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheConditionIsTheHandlersOwn(t *testing.T) {
	tests := map[string]struct {
		siblings []actions.Sibling
		want     string
	}{
		"the only handler that applies": {[]actions.Sibling{{ID: "my-db.one", Action: "apply"}, {ID: "x", Action: "set"}}, "Applied"},
		"one of several":                {[]actions.Sibling{{ID: "my-db.one", Action: "apply"}, {ID: "x", Action: "apply"}}, "MyDbOneApplied"},
		"two that are written alike":    {[]actions.Sibling{{ID: "my-db.one", Action: "apply"}, {ID: "my.db-one", Action: "apply"}}, "my-db.oneApplied"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			built, err := build(t, "{a: {"+head+"{name: a}}}", actions.Build{ID: "my-db.one", Siblings: test.siblings})
			if err != nil {
				t.Fatal(err)
			}
			w := start(t, "{a: {"+head+"{name: a}}}", "{}")
			w.built = built
			if err := w.run(dsl.Create); err != nil {
				t.Fatal(err)
			}
			want := []string{test.want + "=True AllApplied: The child is applied."}
			if test.want != "Applied" {
				want = append(want, "Applied=True AllApplied: All children are applied.")
			}
			if diff := cmp.Diff(want, w.saidAll()); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFaultsAreShownInTheirFile(t *testing.T) {
	r := actions.NewRegistry()
	r.Action(apply.Action(compiler))
	_, err := config.Parse("operator.yaml", []byte(`apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: x}
resources:
  - resource: foos.v1.example.com
    handlers:
      - id: h
        apply:
          pods:
            forEach: ${self.spec.users}
            includeWhen: itme.enabled
            readyWhen: |
              ready(child) &&
                has(children.pod.status)
            template:
              apiVersion: v1
              kind: Pod
              metadata: {name: "${item.nam}-${slef.x}"}
`), r)
	faults, _ := errors.AsType[source.Faults](err)
	var got []string
	for _, f := range faults {
		got = append(got, fmt.Sprintf("%d:%d %s", f.Line, f.Column, f.Path))
	}
	want := []string{
		"11:26 resources[0].handlers[0].apply.pods.includeWhen",
		"18:47 resources[0].handlers[0].apply.pods.template.metadata.name",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func TestExpressionsAreHeldAgainstWhatThereIs(t *testing.T) {
	r := actions.NewRegistry()
	r.Action(apply.Action(compiler))
	_, err := config.Parse("operator.yaml", []byte(`apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: x}
resources:
  - resource: foos.v1.example.com
    handlers:
      - id: h
        apply:
          pods:
            forEach: ${children.bd.spec.list}
            key: ${children.bd.spec.key}
            includeWhen: ${has(children.bd.status)}
            readyWhen: has(children.bd.status)
            rollout: {maxUnavailable: 1, readyWhen: "has(children.bd.status)"}
            template: {apiVersion: v1, kind: Pod, metadata: {name: "${children.bd.metadata.name}"}}
          db: {apiVersion: v1, kind: Pod, metadata: {name: db}}
`), r)
	faults, _ := errors.AsType[source.Faults](err)
	var got []string
	for _, f := range faults {
		got = append(got, fmt.Sprintf("%d:%d %s", f.Line, f.Column, strings.TrimPrefix(f.Path, "resources[0].handlers[0].apply.pods.")))
		if !strings.Contains(f.Message, "db") {
			t.Errorf("%s does not help", f)
		}
	}
	want := []string{"10:33 forEach", "11:29 key", "12:41 includeWhen", "13:37 readyWhen", "14:67 rollout.readyWhen", "15:80 template.metadata.name"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s\n%v", diff, err)
	}
}

func TestAConfigurationMakesAnOperator(t *testing.T) {
	r := actions.NewRegistry()
	r.Action(apply.Action(compiler))
	op, err := config.Parse("operator.yaml", []byte(`apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: x}
resources:
  - resource: foos.v1.example.com
    handlers:
      - id: h
        apply:
          pods:
            forEach: ${self.spec.users}
            key: ${item.name}
            limit: 100
            includeWhen: item.enabled
            readyWhen: ready(child)
            ownership: owned
            adopt: ifUnowned
            onDelete: delete
            rollout: {maxUnavailable: 25%}
            template: {apiVersion: v1, kind: Pod, metadata: {name: "${self.metadata.name}-${key}"}}
          db: {apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}}
          web:
            ownership: labelled
            template: {apiVersion: v1, kind: Service, metadata: {name: "${children.db.metadata.name}"}}
`), r)
	if err != nil {
		t.Fatal(err)
	}
	foo := op.Resources()[0]
	if len(foo.Makes) != 3 || len(maps.Collect(foo.Owned())) != 3 || !foo.Handlers()[0].On(dsl.Delete) {
		t.Errorf("made %v, owned %v, causes %v", foo.Makes, maps.Collect(foo.Owned()), foo.Handlers()[0].Causes)
	}
}
