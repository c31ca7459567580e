// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/handwerk-dev/handwerk/dsl/crd"
)

// FuzzField holds that whatever stands in a field, there is a CRD or a fault within the text, and
// that the CRD can be read back.
func FuzzField(f *testing.F) {
	for _, seed := range []string{
		`string | required=true`, `[]T | listMapKey=a minItems=1`, `map[string][]int-or-string`, "integer\n| default=1 enum=\"1,2\"",
		`string | pattern="^\d+$" validation="self != 'a'" message='b'`, `T | default={"a": "b"}`, `[]string | default=["]"] uniqueItems=true`,
		`quantity | default="1Gi"`, `Tree`, `number | minimum=1e400`, `string | "`, `a | b=`, `U | minimum=1`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			t.Skip("texts of configurations are UTF-8")
		}
		types := map[string]any{"T": map[string]any{"a": "string | required=true"}, "Tree": map[string]any{"t": "[]Tree"}, "U": "unknwn"}
		if !strings.Contains(text, "Tree") {
			delete(types, "Tree")
		}
		if !strings.Contains(text, "U") {
			delete(types, "U")
		}
		tree, faults := crd.Build(webapps, &crd.Schema{Kind: "WebApp", Types: fields(t, types), Spec: fields(t, map[string]any{"f": text})})
		if (tree == nil) == (len(faults) == 0) {
			t.Fatalf("there is a CRD: %v, and %d faults", tree != nil, len(faults))
		}
		lines := strings.Split(text, "\n")
		for _, fault := range faults {
			if fault.Message == "" || strings.Contains(fault.Message, "spec.validation") {
				t.Errorf("it says %q", fault.Message)
			}
			if len(fault.Path) == 0 || fault.Path[0] != "spec" {
				continue
			}
			if fault.Line < 1 || fault.Line > len(lines) || fault.Column < 1 || fault.Column > utf8.RuneCountInString(lines[fault.Line-1])+1 {
				t.Errorf("%d:%d: %s: there is no such place", fault.Line, fault.Column, fault.Message)
			}
		}
		if tree == nil {
			return
		}
		if refused := refusedByTheServer(t, tree); len(refused) > 0 {
			t.Errorf("the API server refuses it: %v", refused)
		}
		if _, s, err := crd.Objects(tree); err != nil || s.Properties["metadata"].Properties["name"].Type[0] != "string" {
			t.Errorf("reading it back: %v", err)
		}
	})
}

func TestTheSchemaOfAnObject(t *testing.T) {
	tree := build(t, &crd.Schema{Spec: fields(t, map[string]any{"a": "integer", "b": "quantity"})})
	kind, s, err := crd.Objects(tree)
	if err != nil {
		t.Fatal(err)
	}
	spec := s.Properties["spec"]
	if got := spec.Properties["a"].Type; len(got) != 1 || got[0] != "integer" {
		t.Errorf("spec.a is of type %v", got)
	}
	if either, _ := spec.Properties["b"].Extensions.GetBool("x-kubernetes-int-or-string"); !either {
		t.Error("spec.b is not integer or text")
	}
	for _, field := range []string{"apiVersion", "kind", "metadata", "status"} {
		if _, has := s.Properties[field]; !has {
			t.Errorf("there is no %s", field)
		}
	}
	if kind.String() != "example.com/v1alpha1, Kind=WebApp" {
		t.Errorf("the kind is %s", kind)
	}
}
