// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package upgrades_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// lots returns a register, as YAML, with lines that name kinds that the server does not have.
func lots(lines int) string {
	var text strings.Builder
	for i := range lines {
		fmt.Fprintf(&text, "Kind%d.example.net\\n", i)
	}
	return `{apiVersion: v1, kind: ConfigMap, metadata: {name: op-children, namespace: ops}, data: {foos.example.com: "` + text.String() + `"}}`
}

func TestARegisterThatSomebodyElseWroteStartsNoFeed(t *testing.T) {
	tests := map[string]struct {
		manager string
		lines   int
		looks   int
		says    []string
	}{
		"lines of somebody else start no feed":                          {"kubectl-edit", 20000, 0, []string{"has invalid entries", "kubectl-edit"}},
		"a line of the operator's does":                                 {"op", 1, 1, nil},
		"of too many lines the first start feeds, and the rest is said": {"op", 20000, source.MaxBorrowed, []string{"has invalid entries", `"tooMany"=19000`}},
		"beyond the bound on feeds one line says so":                    {"op", 500, source.MaxBorrowed, []string{"too many kinds of children are no longer declared", `"number"=436`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersions(t, func(v *scene.Versions) {
				v.Apply(test.manager, lots(test.lines))
				v.Next(scene.AppliesChild("app", "ConfigMap", "a", "ownership: labelled")) // such a one holds its owner's deletion
				v.Settle()
				looks := 0
				for _, line := range v.Log.Lines() {
					if strings.Contains(line, "kind of children is no longer declared; looking for children that are left") {
						looks++
					}
				}
				if looks != test.looks {
					v.T.Errorf("it looks for %d kinds, want %d", looks, test.looks)
				}
				if test.says != nil {
					v.WantLog(test.says...)
				}
				v.WantChildren("ConfigMap a of app/a")
				v.Advance(time.Minute)
				v.Remove()
				v.Advance(time.Minute)
				if v.Web() != nil {
					v.T.Error("the owner is held by kinds that are not looked for")
				}
			})
		})
	}
}

// TestARegisterThatCannotBeWrittenHoldsNothingUp has the server refuse each change of the register.
func TestARegisterThatCannotBeWrittenHoldsNothingUp(t *testing.T) {
	scene.PlayVersions(t, func(v *scene.Versions) {
		v.Next(scene.AppliesChild("app", "ConfigMap", "a", "ownership: labelled"), scene.AppliesChild("old", "Deployment", "b"))
		v.Settle()
		v.Update(scene.ConfigMaps, scene.OpsNamespace, "op-children", scene.SetField(true, "immutable"))
		var tries atomic.Int32
		end := v.Refuse("configmaps", func(o *unstructured.Unstructured) error {
			if o.GetName() != "op-children" {
				return nil
			}
			tries.Add(1)
			return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "op-children", nil)
		})
		v.Next(scene.AppliesChild("app", "ConfigMap", "a", "ownership: labelled"), scene.AppliesChild("more", "Service", "c"))
		v.Advance(time.Minute)
		v.WantChildren("ConfigMap a of app/a", "Service c of more/c")
		v.WantLog("kinds of children cannot be registered", "it is immutable: make it again without immutable: true")
		v.Advance(5 * time.Minute)
		if n := tries.Load(); n > 2 {
			v.T.Errorf("it was tried %d times", n)
		}
		v.Remove()
		v.Advance(time.Minute)
		if v.Web() != nil {
			v.T.Error("an owner is held by a register that cannot be written")
		}
		end()
		v.Update(scene.ConfigMaps, scene.OpsNamespace, "op-children", func(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, "immutable") })
		v.Advance(10 * time.Minute)
		v.Create(scene.Web)
		v.Settle()
		if data := fmt.Sprint(v.Get(scene.ConfigMaps, scene.OpsNamespace, "op-children").Object["data"]); !strings.Contains(data, "Service") {
			v.T.Errorf("when it can be written again, the register is %s", data)
		}
	})
}
