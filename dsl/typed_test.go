// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

type shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"` //nolint:modernize // as in types of Kubernetes
	Spec              shopSpec                    `json:"spec"`
	Status            shopStatus                  `json:"status,omitzero"`
}

type shopSpec struct {
	Replicas int32              `json:"replicas,omitempty"`
	Number   int64              `json:"number"`
	Ratio    float64            `json:"ratio"`
	Title    string             `json:"title"`
	Memory   resource.Quantity  `json:"memory,omitempty"` //nolint:modernize // as in types of Kubernetes
	Port     intstr.IntOrString `json:"port,omitempty"`   //nolint:modernize // as in types of Kubernetes
	TLS      *shopTLS           `json:"tls,omitempty"`
	Doors    []shopDoor         `json:"doors,omitempty"`
	Any      map[string]any     `json:"any,omitempty"`
}

type shopTLS struct {
	Secret string `json:"secret"`
}

type shopDoor struct {
	Name string `json:"name,omitempty"`
	Open bool   `json:"open"`
}

type shopStatus struct {
	Phase      string             `json:"phase"`
	Number     int64              `json:"number"`
	Since      metav1.Time        `json:"since,omitempty"` //nolint:modernize // as in types of Kubernetes
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

const aShop = `
apiVersion: example.com/v1
kind: Shop
metadata:
  name: corner
  namespace: default
  uid: u
  generation: 7
  creationTimestamp: "2026-01-02T03:04:05Z"
  finalizers: [op.example.com/finalizer]
  labels: {a: "1"}
  annotations: {note: x, op.example.com/state: '{"handwerk":2}'}
  x: kept
spec: {replicas: 3, ratio: 0.1, memory: 1024Mi, port: http, tls: {secret: s, x: 1}, big: 9007199254740993,
  any: {big: 9007199254740993}, doors: [{name: front, open: true, x: 1}, {name: back, open: false, x: 2}]}
status: {phase: Up, x: 1, conditions: [{type: Ready, status: "False", reason: R, message: m, lastTransitionTime: "2026-01-02T03:04:05Z"}, {type: Others, status: "True", x: 1}]}
`

func aRequest(t *testing.T, text string) *Request {
	t.Helper()
	o := &unstructured.Unstructured{Object: yamlTree(t, text)}
	return &Request{Subject: Subject{Object: o}, Patch: NewPatch()}
}

// TestWhatATypedHandlerChangesIsItsPatch holds that the difference of what it read and what it left is the patch.
func TestWhatATypedHandlerChangesIsItsPatch(t *testing.T) {
	condition := func(kind, status string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: "R", Message: "m"}
	}
	tests := map[string]struct {
		change         func(s *shop)
		object, status string
		conditions     []metav1.Condition
		wrong          string
	}{
		"nothing":                        {change: func(*shop) {}},
		"a field of the status":          {change: func(s *shop) { s.Status.Number = 1<<53 + 1 }, status: `{number: 9007199254740993}`},
		"a status as it is":              {change: func(s *shop) { s.Status.Phase = "Up" }},
		"a time":                         {change: func(s *shop) { s.Status.Since = metav1.Unix(0, 0) }, status: `{since: "1970-01-01T00:00:00Z"}`},
		"the whole status is zero":       {change: func(s *shop) { s.Status = shopStatus{} }, status: `{phase: null, conditions: null}`},
		"a zero value without omitempty": {change: func(s *shop) { s.Status.Phase = "" }, status: `{phase: ""}`},
		"a zero value with omitempty":    {change: func(s *shop) { s.Spec.Replicas = 0 }, object: `{spec: {replicas: null}}`},
		"a float":                        {change: func(s *shop) { s.Spec.Ratio = 0.3 }, object: `{spec: {ratio: 0.3}}`},
		"a number":                       {change: func(s *shop) { s.Spec.Number = -1 << 63 }, object: `{spec: {number: -9223372036854775808}}`},
		"a quantity":                     {change: func(s *shop) { s.Spec.Memory = resource.MustParse("2Gi") }, object: `{spec: {memory: 2Gi}}`},
		"a quantity that says the same otherwise": {change: func(s *shop) { s.Spec.Memory.Add(resource.MustParse("0")) }},
		"a port":                                 {change: func(s *shop) { s.Spec.Port = intstr.FromInt32(80) }, object: `{spec: {port: 80}}`},
		"a map with unknown fields":              {change: func(s *shop) { s.Spec.TLS.Secret = "other" }, object: `{spec: {tls: {secret: other}}}`},
		"a map that goes":                        {change: func(s *shop) { s.Spec.TLS = nil }, object: `{spec: {tls: null}}`},
		"a number in a map of anything":          {change: func(s *shop) { s.Spec.Any["m"] = s.Spec.Any["big"] }, object: `{spec: {any: {m: 9007199254740993}}}`},
		"an entry of a list":                     {change: func(s *shop) { s.Spec.Doors[1].Open = true }, object: `{spec: {doors: [{name: front, open: true, x: 1}, {name: back, open: true, x: 2}]}}`},
		"an entry less":                          {change: func(s *shop) { s.Spec.Doors = s.Spec.Doors[1:] }, object: `{spec: {doors: [{name: back, open: false, x: 2}]}}`},
		"an entry more":                          {change: func(s *shop) { s.Spec.Doors = append(s.Spec.Doors[1:], shopDoor{}) }, object: `{spec: {doors: [{name: back, open: false, x: 2}, {open: false}]}}`},
		"labels":                                 {change: func(s *shop) { s.Labels = map[string]string{"b": "2"} }, object: `{metadata: {labels: {a: null, b: "2"}}}`},
		"an annotation":                          {change: func(s *shop) { s.Annotations["b"] = "2" }, object: `{metadata: {annotations: {b: "2"}}}`},
		"all annotations go":                     {change: func(s *shop) { s.Annotations = nil }, object: `{metadata: {annotations: {note: null}}}`},
		"the operator's own annotation":          {change: func(s *shop) { s.Annotations["op.example.com/state"] = "" }},
		"an owner":                               {change: func(s *shop) { s.OwnerReferences = []metav1.OwnerReference{{Name: "o"}} }, object: `{metadata: {ownerReferences: [{apiVersion: "", kind: "", name: o, uid: ""}]}}`},
		"the name":                               {change: func(s *shop) { s.Name = "b" }, wrong: "changing metadata.name: it is the API server's"},
		"the finalizers":                         {change: func(s *shop) { s.Finalizers = nil }, wrong: "changing metadata.finalizers: the operator keeps its own"},
		"the kind":                               {change: func(s *shop) { s.Kind = "Stall" }, wrong: "changing kind: an object keeps it"},
		"all of the object":                      {change: func(s *shop) { *s = shop{Spec: s.Spec, Status: s.Status} }, object: `{metadata: {labels: null, annotations: {note: null}}}`, wrong: "changing metadata.creationTimestamp"},
		"a condition":                            {change: func(s *shop) { meta.SetStatusCondition(&s.Status.Conditions, condition("Ready", "True")) }, conditions: []metav1.Condition{condition("Ready", "True")}},
		"a new condition beside them":            {change: func(s *shop) { meta.SetStatusCondition(&s.Status.Conditions, condition("New", "True")) }, conditions: []metav1.Condition{condition("New", "True")}},
		"a condition as it is":                   {change: func(s *shop) { meta.SetStatusCondition(&s.Status.Conditions, condition("Ready", "False")) }},
		"a condition as it is, at another time":  {change: func(s *shop) { s.Status.Conditions[0].LastTransitionTime = metav1.Now() }},
		"a condition of the object's generation": {change: func(s *shop) { s.Status.Conditions[0].ObservedGeneration = 7 }, conditions: []metav1.Condition{condition("Ready", "False")}},
		"a condition of another generation": {change: func(s *shop) {
			s.Status.Conditions = s.Status.Conditions[:1]
			s.Status.Conditions[0].ObservedGeneration = 6
		}, status: `{conditions: [{type: Ready, status: "False", reason: R, message: m, lastTransitionTime: "2026-01-02T03:04:05Z", observedGeneration: 6}]}`},
		"a condition less":                        {change: func(s *shop) { meta.RemoveStatusCondition(&s.Status.Conditions, "Ready") }, status: `{conditions: [{type: Others, status: "True", x: 1}]}`},
		"the object and the status, side by side": {change: func(s *shop) { s.Spec.Title, s.Status.Phase = "t", "p" }, object: `{spec: {title: t}}`, status: `{phase: p}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := aRequest(t, aShop)
			err := Typed(func(_ context.Context, r *TypedRequest[shop]) error { tt.change(r.Object); return nil })(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			got := Patch{Object: r.Patch.Object, Status: r.Patch.Status, Conditions: r.Patch.Conditions}
			for i := range got.Conditions {
				got.Conditions[i].LastTransitionTime = metav1.Time{}
			}
			want := Patch{Object: yamlTree(t, tt.object), Status: yamlTree(t, tt.status), Conditions: tt.conditions}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(Patch{})); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
			if err := r.Patch.Err(); (tt.wrong == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("wrong: %v, want %q", err, tt.wrong)
			}
		})
	}
}

func yamlTree(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if text == "" {
		return out
	}
	err := yaml.Unmarshal([]byte(text), &out)
	if err == nil {
		var decoded any
		decoded, err = plain.Value(any(out))
		out, _ = decoded.(map[string]any)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestATypedHandlerFailsAsOthersDo holds that what it wanted before it failed counts, and its error is what it was.
func TestATypedHandlerFailsAsOthersDo(t *testing.T) {
	r := aRequest(t, aShop)
	later := Temporary(errors.New("not yet"), time.Second)
	err := Typed(func(_ context.Context, r *TypedRequest[shop]) error { r.Object.Status.Phase = "Down"; return later })(t.Context(), r)
	if !errors.Is(err, later) || r.Patch.Status["phase"] != "Down" {
		t.Errorf("error %v, status %v", err, r.Patch.Status)
	}
}

// TestATypedHandlerAndItsPatch holds that both ways of asking go together.
func TestATypedHandlerAndItsPatch(t *testing.T) {
	r := aRequest(t, aShop)
	err := Typed(func(_ context.Context, r *TypedRequest[shop]) error {
		r.Patch.SetStatus("x", 2)
		r.Patch.SetCondition("Seen", metav1.ConditionTrue, "Seen", "")
		r.Patch.Set("spec.tls.x", 2)
		r.Object.Spec.TLS.Secret = "other"
		meta.RemoveStatusCondition(&r.Object.Status.Conditions, "Ready")
		return nil
	})(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(yamlTree(t, `{spec: {tls: {secret: other, x: 2}}}`), r.Patch.Object); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
	if len(r.Patch.Conditions) != 1 || len(r.Patch.Status["conditions"].([]any)) != 1 || r.Patch.Status["x"] != int64(2) {
		t.Errorf("conditions %v, status %v", r.Patch.Conditions, r.Patch.Status)
	}
}

// TestATypedHandlerOfAPart holds that a struct of a few fields is enough, and that null in the object is nothing.
func TestATypedHandlerOfAPart(t *testing.T) {
	type part struct {
		Spec struct {
			Size  *int     `json:"size"`
			Names []string `json:"names"`
		} `json:"spec"`
		Status *struct {
			Size int `json:"size"`
		} `json:"status"`
	}
	run := func(text string, change func(*part)) *Request {
		r := aRequest(t, text)
		err := Typed(func(_ context.Context, r *TypedRequest[part]) error { change(r.Object); return nil })(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	const bare = `{apiVersion: v1, kind: A, metadata: {name: a}, spec: {size: null}}`
	if r := run(bare, func(*part) {}); !r.Patch.Empty() {
		t.Errorf("a handler that changes nothing wants %v, %v", r.Patch.Object, r.Patch.Status)
	}
	r := run(bare, func(p *part) {
		p.Status = &struct {
			Size int `json:"size"`
		}{}
	})
	if diff := cmp.Diff(map[string]any{"size": int64(0)}, r.Patch.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	r = run(`{apiVersion: v1, kind: A, metadata: {name: a}, status: {size: 1, x: 1}}`, func(p *part) { p.Status = nil })
	if diff := cmp.Diff(map[string]any{"size": nil}, r.Patch.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

// TestWhatWasNotThereComesAlone holds that what stands beside a field that is set first is not written along, though the
// struct cannot say that it is not there.
func TestWhatWasNotThereComesAlone(t *testing.T) {
	type deep struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	type part struct {
		Status struct {
			Deep  deep           `json:"deep,omitempty"` //nolint:modernize // as in types of Kubernetes
			Other deep           `json:"other"`
			Ref   *deep          `json:"ref,omitempty"`
			By    map[string]int `json:"by,omitempty"`
		} `json:"status,omitzero"`
	}
	for name, text := range map[string]string{"no status": "", "an empty one": ", status: {}", "one of others": ", status: {x: {}}"} {
		r := aRequest(t, `{apiVersion: v1, kind: A, metadata: {name: a}`+text+`}`)
		err := Typed(func(_ context.Context, r *TypedRequest[part]) error {
			s := &r.Object.Status
			s.Deep.A, s.Other.A, s.Ref, s.By = 1, 1, &deep{}, map[string]int{"z": 0}
			return nil
		})(t.Context(), r)
		if diff := cmp.Diff(yamlTree(t, `{deep: {a: 1}, other: {a: 1}, ref: {a: 0, b: 0}, by: {z: 0}}`), r.Patch.Status); diff != "" || err != nil {
			t.Errorf("%s: %v; status (-want +got):\n%s", name, err, diff)
		}
	}
}

// TestWhatDoesNotFit holds that the error says which object and field it is, also of types that decode themselves.
func TestWhatDoesNotFit(t *testing.T) {
	tests := map[string]struct{ object, says string }{
		"a number":               {`spec: {replicas: many}`, "spec.replicas is text: json: cannot unmarshal string into"},
		"a number with too much": {`spec: {replicas: 99999999999}`, "spec.replicas is the number 99999999999: json: cannot unmarshal number"},
		"a quantity":             {`spec: {memory: lots}`, "spec.memory is text: quantities must match"},
		"a time":                 {`status: {since: yesterday}`, "status.since is text: parsing time"},
		"a map":                  {`spec: [1]`, "spec is a list: json: cannot unmarshal array into"},
		"an entry of a list":     {`spec: {doors: [{open: true}, {open: "yes"}]}`, "spec.doors[1].open is text: json: cannot unmarshal string into"},
		"a label with a dot":     {`metadata: {namespace: default, name: a, labels: {"a.b/c": {}}}`, `metadata.labels["a.b/c"] is a map: json: cannot unmarshal object into`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text := "apiVersion: example.com/v1\nkind: Shop\n" + tt.object
			if !strings.HasPrefix(tt.object, "metadata") {
				text += "\nmetadata: {namespace: default, name: a}"
			}
			called := false
			err := Typed(func(context.Context, *TypedRequest[shop]) error { called = true; return nil })(t.Context(), aRequest(t, text))
			if want := "decoding example.com/v1 Shop default/a: " + tt.says; err == nil || called || !strings.HasPrefix(err.Error(), want) || IsPermanent(err) {
				t.Errorf("called: %t, error %v, want %s", called, err, want)
			}
		})
	}
}

// TestOldIsTyped holds that what was handled last is of the handler's type, and that it need not fit.
func TestOldIsTyped(t *testing.T) {
	tests := map[string]struct {
		old  map[string]any
		want *shop
	}{
		"nothing":                 {nil, nil},
		"the essence":             {map[string]any{"spec": map[string]any{"title": "t"}}, &shop{Spec: shopSpec{Title: "t"}}},
		"one of an earlier type":  {map[string]any{"spec": map[string]any{"replicas": "3", "title": "t"}}, &shop{Spec: shopSpec{Title: "t"}}},
		"one that has a big text": {map[string]any{"spec": map[string]any{"title": strings.Repeat("t", 9)}}, &shop{Spec: shopSpec{Title: "ttttttttt"}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := aRequest(t, aShop)
			r.Old = tt.old
			err := Typed(func(_ context.Context, r *TypedRequest[shop]) error {
				if diff := cmp.Diff(tt.want, r.Old); diff != "" {
					t.Errorf("old (-want +got):\n%s", diff)
				}
				return nil
			})(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestTypedMistakes holds the errors of a handler that leaves no object behind.
func TestTypedMistakes(t *testing.T) {
	for name, change := range map[string]func(r *TypedRequest[shop]){
		"no object":              func(r *TypedRequest[shop]) { r.Object = nil },
		"what JSON cannot write": func(r *TypedRequest[shop]) { r.Object.Spec.Any["f"] = func() {} },
	} {
		r := aRequest(t, aShop)
		_ = Typed(func(_ context.Context, r *TypedRequest[shop]) error { change(r); return nil })(t.Context(), r)
		if err := r.Patch.Err(); err == nil || !strings.Contains(err.Error(), "encoding object: ") || !r.Patch.Empty() {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTypedSteps holds that typed functions are steps as others are, and the later one counts.
func TestTypedSteps(t *testing.T) {
	r := aRequest(t, aShop)
	step := func(phase string) Func {
		return Typed(func(_ context.Context, r *TypedRequest[shop]) error { r.Object.Status.Phase = phase; return nil })
	}
	if err := Steps(step("1"), step("2"))(t.Context(), r); err != nil || r.Patch.Status["phase"] != "2" || r.Step != 2 {
		t.Errorf("%v, step %d, status %v", err, r.Step, r.Patch.Status)
	}
}

// FuzzTyped holds that a typed handler that changes nothing wants nothing, whatever the object has.
func FuzzTyped(f *testing.F) {
	f.Add(`{"replicas":3,"x":{"y":[1,null]}}`, `{"phase":null,"conditions":[{"type":"A"}]}`)
	f.Add(`{"number":9223372036854775807,"ratio":1e400,"doors":[null,{"open":true}]}`, `{"since":null}`)
	f.Add(`{"Replicas":3,"memory":1,"port":"80","any":{"a":[{"b":1.0}]}}`, `[]`)
	f.Fuzz(func(t *testing.T, spec, status string) {
		u := &unstructured.Unstructured{}
		text := `{"apiVersion":"v1","kind":"A","metadata":{"name":"a"},"spec":` + spec + `,"status":` + status + `}`
		if !json.Valid([]byte(text)) || u.UnmarshalJSON([]byte(text)) != nil {
			t.Skip("it is no object that an API server has")
		}
		r := &Request{Subject: Subject{Object: u}, Patch: NewPatch()}
		if err := Typed(func(context.Context, *TypedRequest[shop]) error { return nil })(t.Context(), r); err == nil && (!r.Patch.Empty() || r.Patch.Err() != nil) {
			t.Errorf("of %s it wants %v and %v: %v", text, r.Patch.Object, r.Patch.Status, r.Patch.Err())
		}
	})
}
