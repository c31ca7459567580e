// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestSeveralHandlersPatchOneObject holds that owners, handlers and entries own their fields apart from each other.
func TestSeveralHandlersPatchOneObject(t *testing.T) {
	patches := func(id, label, more string) string {
		return `{id: ` + id + `, ` + more + `patch: {apiVersion: v1, kind: ConfigMap, metadata: {name: red, labels: {` + label + `}}}}`
	}
	labels := func(v *scene.Versions, want map[string]string) {
		v.T.Helper()
		v.Settle()
		if diff := cmp.Diff(want, v.Get(scene.ConfigMaps, "default", "red").GetLabels(), cmpopts.EquateEmpty()); diff != "" {
			v.T.Errorf("labels (-want +got):\n%s", diff)
		}
	}
	t.Run("two owners", func(t *testing.T) {
		scene.PlayVersions(t, func(v *scene.Versions) {
			v.Create(red)
			v.Next(patches("mark", `"${self.metadata.name}": "yes"`, ""))
			v.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: other}}`)
			labels(v, map[string]string{"web": "yes", "other": "yes"})
			v.Delete(scene.Foos, "default", "other")
			labels(v, map[string]string{"web": "yes"})
		})
	})
	t.Run("two handlers, and steps", func(t *testing.T) {
		scene.PlayVersions(t, func(v *scene.Versions) {
			v.Create(red)
			one := `{id: one, steps: [{patch: {apiVersion: v1, kind: ConfigMap, metadata: {name: red, labels: {a: "1"}}}}, {name: b, patch: {apiVersion: v1, kind: ConfigMap, metadata: {name: red, labels: {b: "1"}}}}]}`
			v.Next(one, patches("two", `c: "1"`, ""))
			labels(v, map[string]string{"a": "1", "b": "1", "c": "1"})
			v.Next(`{id: one, steps: [{patch: {apiVersion: v1, kind: ConfigMap, metadata: {name: red, labels: {a: "1"}}}}, {set: {labels: {seen: "yes"}}}]}`)
			labels(v, map[string]string{"a": "1"})
		})
	})
	t.Run("entries, and those that go", func(t *testing.T) {
		scene.PlayVersions(t, func(v *scene.Versions) {
			v.Create(red)
			v.Set([]any{"x", "y"}, "spec", "list")
			v.Next(patches("each", `"${item}": "yes"`, `forEach: "${self.spec.list}", `))
			labels(v, map[string]string{"x": "yes", "y": "yes"})
			v.Set([]any{"y"}, "spec", "list")
			labels(v, map[string]string{"y": "yes"})
			v.Set([]any{}, "spec", "list")
			labels(v, nil)
			v.WantFinalizers()
		})
	})
	t.Run("entries that force one object fail", func(t *testing.T) {
		scene.PlayVersions(t, func(v *scene.Versions) {
			v.Create(red)
			v.Set([]any{"x", "y"}, "spec", "list")
			v.Next(`{id: each, forEach: "${self.spec.list}", patch: {force: true, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: red, labels: {zone: "${item}"}}}}}`)
			v.WantLog("entry x patches it with force, too")
			wantZones(v, "red=x")
		})
	})
	t.Run("two owners that want different values", func(t *testing.T) {
		scene.PlayVersions(t, func(v *scene.Versions) {
			v.Create(red)
			v.Next(patches("mark", `zone: "${self.metadata.name}"`, ""))
			wantZones(v, "red=web")
			v.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: other}}`)
			v.WantLog("belongs to field manager", "op/patch/mark/"+string(v.Web().GetUID()))
			v.Delete(scene.Foos, "default", "web")
			v.Advance(10 * time.Minute)
			wantZones(v, "red=other")
		})
	})
}

// TestEntriesEndWithForEach holds that a handler that has no entries any more gives back what they have patched.
func TestEntriesEndWithForEach(t *testing.T) {
	scene.PlayVersions(t, func(v *scene.Versions) {
		v.Create(red)
		v.Create(blue)
		v.Set([]any{"red", "blue"}, "spec", "list")
		v.Next(`{id: zone, forEach: "${self.spec.list}", patch: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${item}", labels: {zone: "1"}}}}`)
		wantZones(v, "red=1", "blue=1")
		v.Next(zone())
		wantZones(v, "red=1")
		wantManagers(v, "red", "op/patch/zone/UID")
		v.Next(`{id: zone, forEach: "${self.spec.list}", patch: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${item}", labels: {zone: "1"}}}}`)
		wantZones(v, "red=1", "blue=1")
		v.Next(zone(`includeWhen: "false"`))
		wantZones(v)
	})
}

// TestEntriesThatWaitHoldNothingUp holds that an entry that is gone gives back what it has patched also while another one waits.
func TestEntriesThatWaitHoldNothingUp(t *testing.T) {
	for name, lists := range map[string][][]any{
		"the only one waits":                       {{"red"}, {"missing"}},
		"one waits before the last":                {{"red", "blue"}, {"missing", "blue"}},
		"one waits as it did before":               {{"red", "missing", "blue"}, {"missing", "blue"}},
		"one waits after the last that is patched": {{"red", "blue", "missing"}, {"blue", "missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersions(t, func(v *scene.Versions) {
				v.Create(red)
				v.Create(blue)
				v.Set(lists[0], "spec", "list")
				v.Next(`{id: zone, forEach: "${self.spec.list}", patch: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${item}", labels: {zone: "1"}}}}`)
				v.Settle()
				v.Set(lists[1], "spec", "list")
				v.Settle()
				if o := v.Get(scene.ConfigMaps, "default", "red"); o.GetLabels()["zone"] != "" {
					v.T.Errorf("red still has %v", o.GetLabels())
				}
			})
		})
	}
}

// TestWhoIsGoneIsNoConflict holds that a handler gets a field that an entry or a handler has left on an object which is there no more.
func TestWhoIsGoneIsNoConflict(t *testing.T) {
	t.Run("an entry", func(t *testing.T) {
		scene.PlayVersions(t, func(v *scene.Versions) {
			v.Create(red)
			v.Set([]any{"x"}, "spec", "list")
			v.Next(`{id: zone, forEach: "${self.spec.list}", patch: {apiVersion: v1, kind: ConfigMap, metadata: {name: red, labels: {zone: "${item}"}}}}`)
			wantZones(v, "red=x")
			v.Set([]any{"y"}, "spec", "list")
			wantZones(v, "red=y")
			v.Set([]any{"y", "z"}, "spec", "list")
			v.WantLog("belongs to field manager")
			wantZones(v, "red=y")
		})
	})
	t.Run("a handler", func(t *testing.T) {
		scene.PlayVersions(t, func(v *scene.Versions) {
			v.Create(red)
			v.Next(zone())
			wantZones(v, "red=1")
			v.Next(`{id: place, patch: {apiVersion: v1, kind: ConfigMap, metadata: {name: red, labels: {zone: other}}}}`)
			v.Advance(10 * time.Second)
			wantZones(v, "red=other")
		})
	})
	t.Run("a handler without entries any more", func(t *testing.T) {
		scene.PlayVersions(t, func(v *scene.Versions) {
			v.Create(red)
			v.Set([]any{"x"}, "spec", "list")
			v.Next(`{id: zone, forEach: "${self.spec.list}", patch: {apiVersion: v1, kind: ConfigMap, metadata: {name: red, labels: {zone: "${item}"}}}}`)
			wantZones(v, "red=x")
			v.Next(zone())
			v.Advance(10 * time.Second)
			wantZones(v, "red=1")
		})
	})
}

// TestTheReachIsTheNamespaceOfTheOwner holds that an object with a namespace patches elsewhere only where the configuration says so.
func TestTheReachIsTheNamespaceOfTheOwner(t *testing.T) {
	elsewhere := func(reach string) string {
		return `{id: zone, patch: {` + reach + `template: {apiVersion: v1, kind: ConfigMap, metadata: {name: green, namespace: "${self.spec.color == 'red' ? 'ops' : 'default'}", labels: {zone: "1"}}}}}`
	}
	node := func(reach string) string {
		return `{id: zone, patch: {` + reach + `template: {apiVersion: v1, kind: Namespace, metadata: {name: ops, labels: {zone: "1"}}}}}`
	}
	tests := map[string]struct {
		handler string
		refused string
		zones   []string
	}{
		"another namespace":                  {elsewhere(""), "it is not in the namespace of Foo default/web; reach: cluster allows that", nil},
		"another namespace, with the word":   {elsewhere("reach: cluster, "), "", []string{"green=1"}},
		"no namespace":                       {node(""), "it is not in the namespace of Foo default/web; reach: cluster allows that", nil},
		"no namespace, with the word":        {node("reach: cluster, "), "", nil},
		"the operator's own ConfigMap":       {`{id: zone, patch: {reach: cluster, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: op-children, namespace: ops}, data: {a: b}}}}`, "it is the operator's own", nil},
		"a label of the operator itself":     {`{id: zone, patch: {apiVersion: v1, kind: ConfigMap, metadata: {name: red, labels: {"${'op.handwerk.dev/owner'}": x}}}}`, "metadata.labels.op.handwerk.dev/owner belongs to the operator itself", nil},
		"a field of the API server's, given": {`{id: zone, patch: {apiVersion: v1, kind: ConfigMap, metadata: {name: red, "${'uid'}": x}}}`, "metadata.uid belongs to the API server", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersions(t, func(v *scene.Versions) {
				v.Create(red)
				v.Create(green)
				v.Next(tt.handler)
				if tt.refused != "" {
					v.WantLog(tt.refused)
					v.Wrote()
				}
				wantZones(v, tt.zones...)
			})
		})
	}
}

// TestTheObjectItselfIsPatched holds that a handler that patches its own object comes to rest.
func TestTheObjectItselfIsPatched(t *testing.T) {
	scene.PlayVersions(t, func(v *scene.Versions) {
		v.Next(`{id: own, patch: {apiVersion: example.com/v1, kind: Foo, metadata: {name: "${self.metadata.name}", labels: {size: "s${string(self.spec.size)}"}}}}`,
			`{id: sees, set: {status: {saw: "${self.metadata.?labels.?size.orValue('none')}"}}}`)
		v.Wrote(recordWrite, recordWrite, scene.StatusWrite)
		v.WantStatus(map[string]any{"saw": "s1"})
		v.Forget()
		v.Resize(2)
		v.Wrote(recordWrite, scene.StatusWrite)
		v.WantStatus(map[string]any{"saw": "s2"})
		v.Advance(time.Hour)
		v.Delete(scene.Foos, "default", "web")
		v.WantGone()
	})
}

// TestKeysAreComputed holds that keys of labels, annotations and data may be expressions, for patch as for apply, and that what an earlier
// key had goes.
func TestKeysAreComputed(t *testing.T) {
	const fields = `metadata: {name: NAME, labels: {"${self.spec.color}": a}, annotations: {"example.com/${self.spec.color}": b}}, data: {"${self.spec.color}.txt": c}`
	for action, handler := range map[string]string{
		"patch": `{id: one, patch: {apiVersion: v1, kind: ConfigMap, ` + strings.ReplaceAll(fields, "NAME", "red") + `}}`,
		"apply": `{id: one, apply: {a: {apiVersion: v1, kind: ConfigMap, ` + strings.ReplaceAll(fields, "NAME", "child") + `}}}`,
	} {
		t.Run(action, func(t *testing.T) {
			scene.PlayVersions(t, func(v *scene.Versions) {
				v.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: red}}`)
				v.Next(handler)
				for _, color := range []string{"red", "blue"} {
					v.Set(color, "spec", "color")
					v.Settle()
					o := v.Get(scene.ConfigMaps, "default", map[string]string{"patch": "red", "apply": "child"}[action])
					for key := range o.GetAnnotations() {
						if !strings.HasPrefix(key, "example.com/") {
							unstructured.RemoveNestedField(o.Object, "metadata", "annotations", key)
						}
					}
					want := []any{map[string]string{color: "a"}, map[string]string{"example.com/" + color: "b"}, map[string]any{color + ".txt": "c"}}
					if diff := cmp.Diff(want, []any{o.GetLabels(), o.GetAnnotations(), o.Object["data"]}); diff != "" {
						t.Errorf("for %s (-want +got):\n%s", color, diff)
					}
				}
			})
		})
	}
}

// TestManyTargetsFitIntoTheRecord holds that a record with many targets is packed, and read again.
func TestManyTargetsFitIntoTheRecord(t *testing.T) {
	scene.PlayVersions(t, func(v *scene.Versions) {
		var names []any
		for i := range 40 {
			name := fmt.Sprintf("target-%d", i)
			names = append(names, name)
			v.Create(scene.ConfigMapIn("default", name))
		}
		v.Set(names, "spec", "list")
		v.Next(`{id: each, forEach: "${self.spec.list}", patch: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${item}", labels: {zone: "1"}}}}`)
		v.Settle()
		if text := v.Web().GetAnnotations()[scene.RecordAnnotation]; !strings.Contains(text, `"packedTargets"`) {
			v.T.Errorf("the record is %s", text)
		}
		v.Process.Restart()
		v.Settle()
		v.Delete(scene.Foos, "default", "web")
		v.WantGone()
		wantZones(v)
		if left := v.List(scene.ConfigMaps, "default"); !slices.ContainsFunc(left, func(o *unstructured.Unstructured) bool { return o.GetName() == "target-39" }) {
			v.T.Error("an object was deleted")
		}
	})
}
