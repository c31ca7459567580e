// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/handwerk-dev/handwerk/dsl"
)

// texts returns values as texts.
func texts(values []Replaced) (out []string) {
	for _, each := range values {
		out = append(out, fmt.Sprintf("%s=%v", each.Path, each.Was))
	}
	return out
}

// fieldsOf returns fields from their text.
func fieldsOf(text string) *fieldpath.Set {
	return FieldsOf(metav1.ManagedFieldsEntry{FieldsV1: metav1.NewFieldsV1(text)})
}

// TestReplacedValues holds which values are noted before a field manager takes fields. Managers with a slash patch for an owner.
func TestReplacedValues(t *testing.T) {
	const v, image = `{"f:data":{"f:v":{}}}`, `{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:name":{}}}}}`
	note := func(value any) []Replaced {
		return []Replaced{{fieldpath.MakePathOrDie("data", "v"), value}}
	}
	tests := map[string]struct {
		desired, live string
		managers      [][2]string
		fields        string
		notes         map[string][]Replaced
		want          []string
		// unasked: that there is nothing to note is known without the fields.
		unasked bool
	}{
		"another value of somebody":            {"{data: {v: new}}", "{data: {v: old}}", [][2]string{person("v")}, v, nil, []string{".data.v=old"}, false},
		"the same value, which somebody keeps": {"{data: {v: old}}", "{data: {v: old}}", [][2]string{person("v")}, v, nil, nil, true},
		"another value without an owner":       {"{data: {v: new}}", "{data: {v: old}}", nil, v, nil, []string{".data.v=old"}, false},
		"the same value without an owner":      {"{data: {v: old}}", "{data: {v: old}}", nil, v, nil, []string{".data.v=old"}, false},
		"no value":                             {"{data: {v: new}}", "{data: {w: old}}", [][2]string{person("w")}, v, nil, nil, true},
		"a value that is the manager's own":    {"{data: {v: new}}", "{data: {v: old}}", [][2]string{{"op/h", v}}, v, nil, nil, true},
		"a text that becomes a map": {
			"{data: {v: {a: 1, b: 2}}}", "{data: {v: old}}", [][2]string{person("v")}, `{"f:data":{"f:v":{"f:a":{},"f:b":{}}}}`, nil, []string{".data.v=old"}, false,
		},
		"a list that becomes a map": {
			"{data: {v: {a: 1}}}", "{data: {v: [1]}}", [][2]string{person("v")}, `{"f:data":{"f:v":{"f:a":{}}}}`, nil, []string{".data.v=[1]"}, false,
		},
		"a text that becomes an empty map": {
			"{data: {v: {}}}", "{data: {v: old}}", [][2]string{person("v")}, v, nil, []string{".data.v=old"}, false,
		},
		"a map that becomes a text": {
			"{data: {v: new}}", "{data: {v: {a: 1}}}", [][2]string{{"kubectl", `{"f:data":{"f:v":{"f:a":{}}}}`}}, v, nil, []string{".data.v=map[a:1]"}, false,
		},
		"a value that is shared and changes": {
			"{data: {v: new}}", "{data: {v: old}}", [][2]string{{"op/h", v}, person("v")}, v, map[string][]Replaced{"op/h": note("first")}, []string{".data.v=old"}, false,
		},
		"a value that is shared and stays": {
			"{data: {v: old}}", "{data: {v: old}}", [][2]string{{"op/h", v}, person("v")}, v, map[string][]Replaced{"op/h": note("first")}, nil, true,
		},
		"a value that is shared with another handler, which has its original": {
			"{data: {v: new}}", "{data: {v: old}}", [][2]string{{"op/h", v}, {"op/other", v}}, v, map[string][]Replaced{"op/other": note("first")}, nil, true,
		},
		"another handler's value is no original": {
			"{data: {v: new}}", "{data: {v: old}}", [][2]string{{"op/other", v}}, v, nil, nil, true,
		},
		"another handler hands on what it has replaced": {
			"{data: {v: new}}", "{data: {v: old}}", [][2]string{{"op/other", v}}, v, map[string][]Replaced{"op/other": note("first")}, []string{".data.v=first"}, false,
		},
		"another handler hands on what it has replaced by the same value": {
			"{data: {v: old}}", "{data: {v: old}}", [][2]string{{"op/other", v}}, v, map[string][]Replaced{"op/other": note("first")}, []string{".data.v=first"}, false,
		},
		"the note of a handler that has lost the field does not count": {
			"{data: {v: new}}", "{data: {v: old}}", [][2]string{person("v")}, v, map[string][]Replaced{"op/other": note("first"), "op/h": note("first")}, []string{".data.v=old"}, false,
		},
		"a value that somebody shares with another handler": {
			"{data: {v: new}}", "{data: {v: old}}", [][2]string{{"op/other", v}, person("v")}, v, map[string][]Replaced{"op/other": note("first")}, []string{".data.v=old"}, false,
		},
		"the own note is older than a value without an owner": {
			"{data: {v: new}}", "{data: {v: old}}", nil, v, map[string][]Replaced{"op/h": note("first")}, []string{".data.v=old"}, false,
		},
		"a field of a keyed list": {
			"{spec: {containers: [{name: web, image: new}]}}", "{spec: {containers: [{name: log, image: log}, {name: web, image: old}]}}",
			[][2]string{{"kubectl", image}}, image, nil, []string{`.spec.containers[name="web"].image=old`}, false,
		},
		"all fields of a keyed list are the manager's": {
			"{spec: {containers: [{name: web, image: new}]}}", "{spec: {containers: [{name: web, image: old}]}}", [][2]string{{"op/h", image}}, image, nil, nil, true,
		},
		"another entry of a keyed list": {
			"{secrets: [{name: b}]}", "{secrets: [{name: a}]}", [][2]string{{"kubectl", `{"f:secrets":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}`}},
			`{"f:secrets":{"k:{\"name\":\"b\"}":{".":{},"f:name":{}}}}`, nil, nil, true,
		},
		"a list that is one field": {
			"{rules: [a]}", "{rules: [a]}", [][2]string{{"kubectl", `{"f:rules":{}}`}}, `{"f:rules":{}}`, nil, nil, true,
		},
		"a list that nobody owns": {
			"{rules: [b]}", "{rules: [a]}", nil, `{"f:rules":{}}`, nil, []string{".rules=[a]"}, false,
		},
		"an entry of a set that is new": {
			"{metadata: {finalizers: [b]}}", "{metadata: {finalizers: [a]}}", [][2]string{{"kubectl", `{"f:metadata":{"f:finalizers":{"v:\"a\"":{}}}}`}},
			`{"f:metadata":{"f:finalizers":{"v:\"b\"":{}}}}`, nil, nil, true,
		},
		"an entry of a set without an owner": {
			"{metadata: {finalizers: [a, b]}}", "{metadata: {finalizers: [b]}}", nil, `{"f:metadata":{"f:finalizers":{"v:\"a\"":{},"v:\"b\"":{}}}}`, nil, []string{`.metadata.finalizers[="b"]=b`}, false,
		},
		"an empty map does not stand for what others have in it": {
			"{spec: {emptyDir: {}}}", "{spec: {emptyDir: {medium: Memory}}}", [][2]string{{"kubectl", `{"f:spec":{"f:emptyDir":{"f:medium":{}}}}`}}, `{"f:spec":{"f:emptyDir":{}}}`, nil, nil, true,
		},
		"a value without an owner that stays anyway": {
			"{spec: {replicas: 1}}", "{spec: {replicas: 5}}", nil, `{"f:spec":{"f:replicas":{}}}`, nil, nil, true,
		},
		"a value of somebody that would stay": {
			"{spec: {replicas: 1}}", "{spec: {replicas: 5}}", [][2]string{{"kubectl", `{"f:spec":{"f:replicas":{}}}`}}, `{"f:spec":{"f:replicas":{}}}`, nil, []string{".spec.replicas=5"}, false,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			live := child(t, tt.live, tt.managers...)
			asApplied(live, "op/")
			taking := Taking{
				Desired: child(t, tt.desired), Live: live, Manager: "op/h", Fields: fieldsOf(tt.fields), Kept: []dsl.Path{{"spec", "replicas"}},
				Noted: func(manager string) ([]Replaced, bool) { return tt.notes[manager], strings.Contains(manager, "/") },
			}
			if diff := cmp.Diff(tt.want, texts(taking.Replaced())); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
			if got := taking.MayReplace(); got == tt.unasked {
				t.Errorf("it may replace values: %t", got)
			}
		})
	}
}

// asApplied makes the entries of managers with a prefix those of applies.
func asApplied(o *unstructured.Unstructured, prefix string) {
	entries := o.GetManagedFields()
	for i := range entries {
		if strings.HasPrefix(entries[i].Manager, prefix) {
			entries[i].Operation = metav1.ManagedFieldsOperationApply
		}
	}
	o.SetManagedFields(entries)
}

// TestValuesWithoutAnOwnerMayBeOnesOwn holds that nothing is noted that the manager has applied under another name of the field.
func TestValuesWithoutAnOwnerMayBeOnesOwn(t *testing.T) {
	live := child(t, "{data: {v: old}}", [2]string{"op/h", `{"f:data":{"f:former":{}}}`})
	asApplied(live, "op/")
	live.SetAPIVersion("v2")
	none := func(string) ([]Replaced, bool) { return nil, false }
	taking := Taking{Desired: child(t, "{data: {v: new}}"), Live: live, Manager: "op/h", Fields: fieldsOf(`{"f:data":{"f:v":{}}}`), Noted: none}
	if got := taking.Replaced(); len(got) > 0 {
		t.Errorf("it is %v", texts(got))
	}
	values := []Replaced{{fieldpath.MakePathOrDie("data", "former"), "old"}}
	if got := Restored(child(t, "{}"), live, "op/h", values); len(got) > 0 {
		t.Errorf("in another version %v comes back", texts(got))
	}
}

// TestNoteAfterAnApply holds which earlier values stay in the note, that a note is read as it was written, and that values come back.
func TestNoteAfterAnApply(t *testing.T) {
	live := child(t, "{data: {}}", [2]string{"op/h", `{"f:data":{"f:kept":{},"f:again":{}}}`})
	asApplied(live, "op/")
	of := func(key, value string) Replaced { return Replaced{fieldpath.MakePathOrDie("data", key), value} }
	values := After([]Replaced{of("kept", "1"), of("again", "1"), of("lost", "1")}, []Replaced{of("again", "2"), of("new", "2")}, live, "op/h")
	want := []string{".data.kept=1", ".data.again=2", ".data.new=2"}
	note, large := EncodeReplaced(append(values, of("large", strings.Repeat("x", 2<<10))), 1<<20)
	read, err := DecodeReplaced(note)
	if diff := cmp.Diff(want, texts(read)); diff != "" || err != nil || !cmp.Equal(large, []string{".data.large"}) {
		t.Errorf("the note %s (%v) without %v (-want +got):\n%s", note, err, large, diff)
	}
	if again, large := EncodeReplaced(values, len(note)+1); again != note || len(large) > 0 {
		t.Errorf("with room the note is %s without %v", again, large)
	}
	if small, large := EncodeReplaced(values, len(note)); len(small) > len(note) || !cmp.Equal(large, []string{".data.new"}) {
		t.Errorf("without room the note is %s without %v", small, large)
	}
	if _, err := DecodeReplaced("{"); err == nil {
		t.Error("half a note is read")
	}
	got := With(child(t, "{data: {new: 3}}"), read)
	if diff := cmp.Diff(map[string]any{"kept": "1", "again": "2", "new": "2"}, got.Object["data"]); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}

// TestRefusedFields holds which fields stay because the API server requires them.
func TestRefusedFields(t *testing.T) {
	const own = `{"f:data":{"f:v":{}},"f:spec":{"f:containers":{"k:{\"name\":\"old\"}":{".":{},"f:name":{}},"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:name":{}}},"f:paused":{}}}`
	const old, web = `.spec.containers[name="old"]`, `.spec.containers[name="web"]`
	required := func(field string) metav1.StatusCause {
		return metav1.StatusCause{Type: metav1.CauseTypeFieldValueRequired, Field: field}
	}
	missing := func(field string) []metav1.StatusCause { return []metav1.StatusCause{required(field)} }
	wrong := metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec"}
	tests := map[string]struct {
		desired string
		causes  []metav1.StatusCause
		want    []string
	}{
		"a field of an entry, with the entry": {"{}", missing("spec.containers[0].image"), []string{web, web + ".image"}},
		"an entry of a list that moves up":    {"{}", missing("spec.containers[1].image"), nil},
		"an entry that is not there":          {"{}", missing("spec.containers[2].image"), nil},
		"a list without entries that go":      {"{spec: {containers: [{name: side}]}}", missing("spec.containers"), []string{old, old + ".name", web, web + ".image", web + ".name"}},
		"an entry of a list with new ones":    {"{spec: {containers: [{name: side}]}}", missing("spec.containers[1].image"), nil},
		"a field that comes back":             {`{spec: {containers: [{name: web, image: ""}]}}`, missing("spec.containers[0].image"), nil},
		"a list":                              {"{}", missing("spec.containers"), []string{old, old + ".name", web, web + ".image", web + ".name"}},
		"a rule about all that is in a map":   {"{}", []metav1.StatusCause{wrong}, nil},
		"none is named":                       {"{}", []metav1.StatusCause{{Message: "no"}}, nil},
		"a field that the template lacks":     {"{data: {v: b}}", []metav1.StatusCause{required("spec.containers[0].image")}, []string{web, web + ".image"}},
		"a field that the template has":       {"{data: {v: b}}", []metav1.StatusCause{required("data.v")}, nil},
		"something else is wrong":             {"{data: {v: b}}", []metav1.StatusCause{wrong}, nil},
		"another field with the same begin":   {"{data: {v: b}}", []metav1.StatusCause{required("spec.pause")}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			live := child(t, "{spec: {containers: [{name: old}, {name: web, image: a}]}}", [2]string{"op", own}, [2]string{"kubectl", `{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:name":{}}}}}`})
			asApplied(live, "op")
			var got []string
			for path := range Required(child(t, tt.desired), live, "op", tt.causes).All() {
				got = append(got, path.String())
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.SortSlices(strings.Compare)); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}
