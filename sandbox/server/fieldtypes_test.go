// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

var update = flag.Bool("update", false, "write fieldtypes.txt")

// TestTheTypesOfFieldsAreThoseOfClientGo holds the types that the server reads against those of client-go, for all kinds whose fields it
// knows. With -update it writes fieldtypes.txt.
func TestTheTypesOfFieldsAreThoseOfClientGo(t *testing.T) {
	theirs := applyconfigurations.NewTypeConverter(scheme.Scheme)
	var kinds []schema.GroupVersionKind
	want := map[string]smd.TypeDef{}
	for _, r := range append(slices.Clone(builtins()), rareBuiltins()...) {
		for _, version := range r.versions {
			kind := schema.GroupVersionKind{Group: r.group, Version: version, Kind: r.kind}
			empty := &unstructured.Unstructured{Object: map[string]any{}}
			empty.SetGroupVersionKind(kind)
			object, err := theirs.ObjectToTyped(empty)
			if err != nil {
				continue // a kind of another API server
			}
			kinds = append(kinds, kind)
			collect(want, object.Schema(), *object.TypeRef().NamedType)
		}
	}
	if len(kinds) < 50 {
		t.Errorf("client-go knows the fields of %d kinds alone", len(kinds))
	}
	if *update {
		write(t, want)
		return
	}
	got := map[string]smd.TypeDef{}
	for _, kind := range kinds {
		name, err := scheme.Scheme.ToOpenAPIDefinitionName(kind)
		if err != nil {
			t.Fatal(err)
		}
		for _, each := range builtinTypes.below(name) {
			got[each.Name] = each
		}
	}
	if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
		t.Errorf("there are %d types, want %d; %s", len(got), len(want), renew)
	}
	for name := range want {
		if got, want := encode(t, got[name]), encode(t, want[name]); !bytes.Equal(got, want) {
			t.Errorf("type %s is\n%s\nwant\n%s\n%s", name, got, want, renew)
		}
	}
}

// renew says what to do when client-go has other types.
const renew = "go test ./sandbox/server -run TestTheTypesOfFields -update writes fieldtypes.txt"

// collect adds a type of a schema, and those that it refers to.
func collect(to map[string]smd.TypeDef, from *smd.Schema, name string) {
	if _, known := to[name]; known {
		return
	}
	i := slices.IndexFunc(from.Types, func(each smd.TypeDef) bool { return each.Name == name })
	to[name] = from.Types[i]
	collectAtom(to, from, from.Types[i].Atom)
}

func collectAtom(to map[string]smd.TypeDef, from *smd.Schema, a smd.Atom) {
	refer := func(r smd.TypeRef) {
		if r.NamedType != nil {
			collect(to, from, *r.NamedType)
		}
		collectAtom(to, from, r.Inlined)
	}
	if a.List != nil {
		refer(a.List.ElementType)
	}
	if a.Map != nil {
		refer(a.Map.ElementType)
		for _, field := range a.Fields {
			refer(field.Type)
		}
	}
}

// encode returns a type in JSON, without its name and its unions, which nothing looks at.
func encode(t *testing.T, one smd.TypeDef) []byte {
	t.Helper()
	out, err := json.Marshal(plainAtom(one.Atom))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func plainAtom(a smd.Atom) map[string]any {
	out := map[string]any{}
	if a.Scalar != nil {
		out["scalar"] = *a.Scalar
	}
	if l := a.List; l != nil {
		out["list"] = filled(map[string]any{"elementType": plainReference(l.ElementType), "elementRelationship": string(l.ElementRelationship), "keys": l.Keys})
	}
	if m := a.Map; m != nil {
		var fields []map[string]any
		for _, f := range m.Fields {
			fields = append(fields, filled(map[string]any{"name": f.Name, "type": plainReference(f.Type), "default": f.Default}))
		}
		out["map"] = filled(map[string]any{"elementType": plainReference(m.ElementType), "elementRelationship": string(m.ElementRelationship), "fields": fields})
	}
	return out
}

func plainReference(r smd.TypeRef) map[string]any {
	out := plainAtom(r.Inlined)
	if r.NamedType != nil {
		out["namedType"] = *r.NamedType
	}
	if r.ElementRelationship != nil {
		out["elementRelationship"] = *r.ElementRelationship
	}
	if r.Nullable {
		out["nullable"] = true
	}
	return out
}

// filled returns a map without its empty values. A default may be empty.
func filled(m map[string]any) map[string]any {
	if empty, is := m["default"].(map[any]any); is && len(empty) == 0 { // as client-go has it
		m["default"] = map[string]any{}
	}
	maps.DeleteFunc(m, func(key string, value any) bool {
		v := reflect.ValueOf(value)
		return value == nil || key != "default" && v.Len() == 0
	})
	return m
}

func write(t *testing.T, types map[string]smd.TypeDef) {
	t.Helper()
	out := &bytes.Buffer{}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		fmt.Fprintf(out, "%s\t%s\n", name, encode(t, types[name]))
	}
	if err := os.WriteFile("fieldtypes.txt", out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
