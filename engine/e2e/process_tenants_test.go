// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// TestARegisterFullOfLines has somebody who may write ConfigMaps in the operator's namespace fill its register, in its name.
func TestARegisterFullOfLines(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	var lines strings.Builder
	for n := range 10_000 {
		fmt.Fprintf(&lines, "Invented%d.invented%d.example.com\n", n, n)
	}
	register, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "household-children"},
		"data": map[string]any{"works.e2e.example.com": lines.String()},
	})
	if err != nil {
		t.Fatal(err)
	}
	plane.Objects(configMaps, h.mine).By("household").Send(t, "household-children", types.ApplyPatchType, string(register))
	h.start(t)
	h.serves(t, "before")
	plane.Objects(works, h.mine).Create(t, parted("w", "small", "a"))
	plane.Objects(configMaps, h.mine).Await(t, "w-a", "its child", func(*unstructured.Unstructured) bool { return true })
	h.serves(t, "after")
	h.mustFit(t)
}

// TestManyNamespaces has somebody create 300 namespaces that a glob of the operator's scope matches.
func TestManyNamespaces(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	h.user.Allow(t, []rbacv1.PolicyRule{
		cluster.Rule("", "namespaces", "get", "list", "watch"),
		cluster.Rule("e2e.example.com", "works", "get", "list", "watch", "patch"), cluster.Rule("e2e.example.com", "works/status", "patch"),
		cluster.Rule("", "configmaps", "*"),
	}...)
	h.start(t, "-n", h.mine+"-*")
	h.serves(t, "before")
	namespaces := plane.Objects("namespaces.v1", "")
	for n := range 300 {
		namespaces.Create(t, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": fmt.Sprintf("%s-%d", h.mine, n)},
		}})
	}
	last := h.mine + "-299"
	plane.Objects(works, last).Create(t, parted("w", "small", "a"))
	plane.Objects(configMaps, last).Await(t, "w-a", "the child in the newest namespace", func(*unstructured.Unstructured) bool { return true })
	h.serves(t, "after")
	h.mustFit(t)
}
