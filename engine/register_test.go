// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/engine/feed"
)

// lots returns a register, as YAML, with lines that name kinds that the server does not have.
func lots(lines int) string {
	var text strings.Builder
	for i := range lines {
		fmt.Fprintf(&text, "Kind%d.example.net\\n", i)
	}
	return `{apiVersion: v1, kind: ConfigMap, metadata: {name: op-children, namespace: ops}, data: {foos.example.com: "` + text.String() + `"}}`
}

func TestARegisterThatSomebodyElseWrote(t *testing.T) {
	tests := map[string]struct {
		manager string
		lines   int
		looks   int
		says    []string
	}{
		"lines of somebody else start no feed":                          {"kubectl-edit", 20000, 0, []string{"has invalid entries", "kubectl-edit"}},
		"a line of the operator's does":                                 {"op", 1, 1, nil},
		"of too many lines the first start feeds, and the rest is said": {"op", 20000, feed.Lent, []string{"has invalid entries", `"tooMany"=19000`}},
		"beyond the bound on feeds one line says so":                    {"op", 500, feed.Lent, []string{"too many kinds of children are no longer declared", `"number"=436`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			follow(t, func(v *versions) {
				v.Apply(test.manager, lots(test.lines))
				v.version(childOf("app", "ConfigMap", "a", "ownership: labelled")) // such a one holds its owner's deletion
				v.Settle()
				looks := 0
				for _, line := range v.log.take() {
					if strings.Contains(line, "kind of children is no longer declared; looking for children that are left") {
						looks++
					}
					v.log.all = append(v.log.all, line)
				}
				if looks != test.looks {
					v.t.Errorf("it looks for %d kinds, want %d", looks, test.looks)
				}
				if test.says != nil {
					v.says(test.says...)
				}
				v.has("ConfigMap a of app/a")
				v.Advance(time.Minute)
				v.remove()
				v.Advance(time.Minute)
				if v.web() != nil {
					v.t.Error("the owner is held by kinds that are not looked for")
				}
			})
		})
	}
}

// TestARegisterThatCannotBeWritten has the server refuse each change of the register.
func TestARegisterThatCannotBeWritten(t *testing.T) {
	follow(t, func(v *versions) {
		v.version(childOf("app", "ConfigMap", "a", "ownership: labelled"), childOf("old", "Deployment", "b"))
		v.Settle()
		v.Update(configMaps, inOps, "op-children", func(o *unstructured.Unstructured) { v.setField(o, true, "immutable") })
		var tries atomic.Int32
		end := v.Refuse("configmaps", func(o *unstructured.Unstructured) error {
			if o.GetName() != "op-children" {
				return nil
			}
			tries.Add(1)
			return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "op-children", nil)
		})
		v.version(childOf("app", "ConfigMap", "a", "ownership: labelled"), childOf("more", "Service", "c"))
		v.Advance(time.Minute)
		v.has("ConfigMap a of app/a", "Service c of more/c")
		v.says("kinds of children cannot be registered", "it is immutable: make it again without immutable: true")
		v.Advance(5 * time.Minute)
		if n := tries.Load(); n > 2 {
			v.t.Errorf("it was tried %d times", n)
		}
		v.remove()
		v.Advance(time.Minute)
		if v.web() != nil {
			v.t.Error("an owner is held by a register that cannot be written")
		}
		end()
		v.Update(configMaps, inOps, "op-children", func(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, "immutable") })
		v.Advance(10 * time.Minute)
		v.Create(web)
		v.Settle()
		if data := fmt.Sprint(v.Get(configMaps, inOps, "op-children").Object["data"]); !strings.Contains(data, "Service") {
			v.t.Errorf("when it can be written again, the register is %s", data)
		}
	})
}
