// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/crd"
)

type (
	object[S, T any] struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              S `json:"spec,omitempty"`
		Status            T `json:"status,omitzero"`
	}
	nothing  struct{}
	color    string
	secret   struct{ plain string }
	username struct{ name string }
	Common   struct {
		Owner string `json:"owner,omitempty"`
	}
	port struct {
		Name string `json:"name"`
		Port uint16 `json:"port" schema:"default=80 minimum=1"`
	}
	tree struct {
		Name     string `json:"name"`
		Branches []tree `json:"branches,omitempty"`
	}
	left  struct{ Right *right }
	right struct{ Left map[string]left }
)

func (color) SchemaText() string                  { return `string | enum="red,green"` }
func (s secret) MarshalJSON() ([]byte, error)     { return json.Marshal(s.plain) }
func (u *username) MarshalText() ([]byte, error)  { return []byte(u.name), nil }
func (u *username) UnmarshalText(in []byte) error { u.name = string(in); return nil }

// everyForm has a field of every form. All are optional, so that the table is about their forms.
type everyForm struct {
	Common
	Text      string                    `json:"text,omitempty"`
	Named     color                     `json:"named,omitempty"`
	Int       int                       `json:"int,omitempty"`
	Int32     int32                     `json:"int32,omitempty"`
	Int64     int64                     `json:"int64,omitempty" schema:"minimum=-1 maximum=5"`
	Int8      int8                      `json:"int8,omitempty"`
	Uint      uint                      `json:"uint,omitempty"`
	Uint16    uint16                    `json:"uint16,omitempty" schema:"minimum=1"`
	Float     float64                   `json:"float,omitempty"`
	Bool      *bool                     `json:"bool"`
	AsText    int                       `json:"asText,omitempty,string"`
	Time      metav1.Time               `json:"time,omitzero"`
	Moment    *time.Time                `json:"moment"`
	Duration  *metav1.Duration          `json:"duration"`
	Quantity  resource.Quantity         `json:"quantity,omitzero"`
	Either    intstr.IntOrString        `json:"either,omitzero" schema:"default=80"`
	Bytes     []byte                    `json:"bytes,omitempty"`
	Texts     []string                  `json:"texts,omitempty" schema:"uniqueItems=true maxItems=3"`
	Colors    []color                   `json:"colors,omitempty"`
	Ports     []port                    `json:"ports,omitempty" schema:"listMapKey=name"`
	Map       map[color]int64           `json:"map,omitempty"`
	Open      map[string]any            `json:"open,omitempty"`
	Raw       runtime.RawExtension      `json:"raw,omitzero"`
	Any       any                       `json:"any" schema:"default=3"`
	Message   json.RawMessage           `json:"message,omitempty"`
	Date      string                    `json:"date,omitempty" schema:"date"`
	Encoded   secret                    `json:"encoded,omitzero" schema:"string | minLength=1 description='a | b'"`
	User      username                  `json:"user,omitzero"`
	Pattern   string                    `json:"pattern,omitempty" schema:"pattern='^(a|b)$'"`
	Reference corev1.SecretKeySelector  `json:"reference,omitzero"`
	Nested    struct{ Deep, Down bool } `json:"nested,omitzero"`
	Limits    struct {
		Count int64 `json:"count" schema:"default=3"`
	} `json:"limits"`
	_       string
	Ignored string `json:"-"`
}

// described makes the CRD of a resource from a type.
func described[T any](define func(*dsl.Resource), more ...func(*crd.Schema)) (*dsl.Resource, error) {
	op := dsl.New("demo")
	r := op.Resource("webapps.v1alpha1.example.com", func(r *dsl.Resource) {
		crd.Describe[T](r, more...)
		r.OnCreate("greet", func(context.Context, *dsl.Request) error { return nil })
		if define != nil {
			define(r)
		}
	})
	return r, op.Validate()
}

func named(kind string) func(*crd.Schema) { return func(s *crd.Schema) { s.Kind = kind } }

func TestAGoFieldOfEveryForm(t *testing.T) {
	r, err := described[object[everyForm, nothing]](nil, named("WebApp"))
	if err != nil {
		t.Fatal(err)
	}
	got := properties(t, r.CRD, "spec")
	want := map[string]string{
		"owner":     `{type: string}`,
		"text":      `{type: string}`,
		"named":     `{type: string, enum: [red, green]}`,
		"int":       `{type: integer, format: int64}`,
		"int32":     `{type: integer, format: int32}`,
		"int64":     `{type: integer, format: int64, minimum: -1, maximum: 5}`,
		"int8":      `{type: integer, format: int64, minimum: -128, maximum: 127}`,
		"uint":      `{type: integer, format: int64, minimum: 0}`,
		"uint16":    `{type: integer, format: int64, minimum: 1, maximum: 65535}`,
		"float":     `{type: number}`,
		"bool":      `{type: boolean}`,
		"asText":    `{type: string}`,
		"time":      `{type: string, format: date-time}`,
		"moment":    `{type: string, format: date-time}`,
		"either":    `{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], default: 80}`,
		"bytes":     `{type: string, format: byte}`,
		"texts":     `{type: array, items: {type: string}, x-kubernetes-list-type: set, maxItems: 3}`,
		"colors":    `{type: array, items: {type: string, enum: [red, green]}}`,
		"ports":     `{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, port: {type: integer, format: int64, minimum: 1, maximum: 65535, default: 80}}}}`,
		"map":       `{type: object, additionalProperties: {type: integer, format: int64}}`,
		"open":      `{type: object, x-kubernetes-preserve-unknown-fields: true}`,
		"raw":       `{type: object, x-kubernetes-preserve-unknown-fields: true}`,
		"any":       `{x-kubernetes-preserve-unknown-fields: true, default: 3}`,
		"message":   `{x-kubernetes-preserve-unknown-fields: true}`,
		"date":      `{type: string, format: date}`,
		"encoded":   `{type: string, minLength: 1, description: a | b}`,
		"user":      `{type: string}`,
		"pattern":   `{type: string, pattern: ^(a|b)$}`,
		"reference": `{type: object, required: [key], properties: {key: {type: string}, name: {type: string}, optional: {type: boolean}}}`,
		"nested":    `{type: object, required: [Deep, Down], properties: {Deep: {type: boolean}, Down: {type: boolean}}}`,
		"limits":    `{type: object, default: {}, properties: {count: {type: integer, format: int64, default: 3}}}`,
	}
	for name, text := range want {
		mustEqual(t, name, any(read(t, text)), got[name])
	}
	for name, field := range got {
		if _, known := want[name]; !known && name != "duration" && name != "quantity" { // which have long patterns
			t.Errorf("there is a field %s: %v", name, field)
		}
	}
}

// TestADurationIsWhatGoReads holds the pattern against the function that reads durations.
func TestADurationIsWhatGoReads(t *testing.T) {
	for _, text := range []string{"1h30m", "0", "-1.5s", ".5m", "+300ms", "", "1", "1 day", "1d", "h", "1h 30m", "1.h", "00", "1µs"} {
		_, read := time.ParseDuration(text)
		if got := crd.DurationPattern.MatchString(text); got != (read == nil) && text != "00" { // Go reads it; the pattern, which refuses it, stays simple
			t.Errorf("%q matches: %v, and Go says %v", text, got, read)
		}
	}
}

type webAppSpec struct {
	Image    string `json:"image"`
	Replicas int64  `json:"replicas,omitempty" schema:"default=1 minimum=1 maximum=10 description=\"How many\""`
	Ports    []int  `json:"ports,omitempty"`
	TLS      *struct {
		Host   string  `json:"host"`
		Secret *string `json:"secret,omitempty"`
	} `json:"tls,omitempty"`
}

type webAppStatus struct {
	ReadyReplicas int64              `json:"readyReplicas"`
	Conditions    []metav1.Condition `json:"conditions,omitempty"`
}

// TestAGoTypeIsWhatYAMLSays holds that both forms make the same CRD.
func TestAGoTypeIsWhatYAMLSays(t *testing.T) {
	r, err := described[*object[webAppSpec, webAppStatus]](func(r *dsl.Resource) {
		r.Machine(dsl.Machine{States: []dsl.State{{Name: "Open", Terminal: true}}})
	}, named("WebApp"), func(s *crd.Schema) {
		s.ShortNames, s.Columns = []string{"wa"}, []crd.Column{{Name: "Ready", Path: ".status.readyReplicas"}}
	})
	if err != nil {
		t.Fatal(err)
	}
	want := build(t, &crd.Schema{
		ShortNames: []string{"wa"}, Columns: []crd.Column{{Name: "Ready", Path: ".status.readyReplicas"}},
		Spec: fields(t, read(t, `{image: string | required=true, replicas: 'integer | default=1 minimum=1 maximum=10 description="How many"',
  ports: "[]integer", tls: {host: string | required=true, secret: string}}`)),
		Status: fields(t, read(t, `{readyReplicas: integer}`)), Machines: []string{""},
	})
	mustEqual(t, "the CRD", want, r.CRD)
}

func TestSpecIsRequiredWhereAFieldMustBeGiven(t *testing.T) {
	for name, test := range map[string]struct {
		describe func() (*dsl.Resource, error)
		want     any
	}{
		"a field must be given": {func() (*dsl.Resource, error) { return described[object[webAppSpec, nothing]](nil, named("A")) }, []any{"spec"}},
		"no field must": {func() (*dsl.Resource, error) {
			return described[object[struct {
				A string  `json:"a,omitempty"`
				B *string `json:"b"`
				C string  `json:"c" schema:"default=x"`
				D string  `json:"d" schema:"required=false"`
			}, nothing]](nil, named("A"))
		}, nil},
		"a field is marked": {func() (*dsl.Resource, error) {
			return described[object[struct {
				A *string `json:"a,omitempty" schema:"required=true"`
			}, nothing]](nil, named("A"))
		}, []any{"spec"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := test.describe()
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := unstructured.NestedFieldNoCopy(versionOf(t, r.CRD), "schema", "openAPIV3Schema", "required")
			if err != nil {
				t.Fatal(err)
			}
			mustEqual(t, "what is required", test.want, got)
		})
	}
}

func TestAGoTypeThatNoCRDCanSayIsAFault(t *testing.T) {
	const where = "resource webapps.v1alpha1.example.com: schema"
	for name, test := range map[string]struct {
		describe func() (*dsl.Resource, error)
		want     []string
	}{
		"a type within itself": {func() (*dsl.Resource, error) {
			return described[object[struct {
				Root tree `json:"root"`
			}, nothing]](nil, named("A"))
		}, []string{where + ".spec.root.branches: the type tree contains itself (tree → tree), which a CRD cannot say (the tag `schema:\"object\"` leaves the form open)"}},
		"types within each other": {func() (*dsl.Resource, error) {
			return described[object[struct{ A, B left }, nothing]](nil, named("A"))
		}, []string{where + ".spec.A.Right.Left: the type left contains itself (left → right → left), which a CRD cannot say (the tag `schema:\"object\"` leaves the form open)"}},
		"markers": {func() (*dsl.Resource, error) {
			return described[object[struct {
				A string   `json:"a" schema:"patern=x"`
				B int      `json:"b" schema:"pattern=x"`
				C int      `json:"c" schema:"default=x"`
				D string   `json:"d" schema:"required"`
				E string   `json:"e" schema:"enum=x,y default=z"`
				F []string `json:"f" schema:"enum=x,y"`
				G string   `json:"g" schema:"strng | minLength=1"`
				H int8     `json:"h" schema:"default=300"`
				I string   `json:"i" schema:"minLength"`
			}, nothing]](nil, named("A"))
		}, []string{
			where + `.spec.a: unknown marker "patern" (did you mean "pattern"?)`,
			where + `.spec.b: pattern is for text, not for integers`,
			where + `.spec.c: want an integer, found "x"`,
			where + `.spec.d: the marker "required" has no value (want required=true, without spaces around =)`,
			where + `.spec.e: the default "z" is no value of the enum (supported values: "x", "y")`,
			where + `.spec.f: enum is for text and integers and numbers, not for lists; for the elements of a list, give them a type with a method SchemaText`,
			where + `.spec.g: unknown type "strng" (did you mean "string"?)`,
			where + `.spec.h: the default 300 does not fit: should be less than or equal to 127`,
			where + `.spec.i: the marker "minLength" has no value (want name=value, without spaces around =)`,
		}},
		"values without a form": {func() (*dsl.Resource, error) {
			return described[object[struct {
				A func()         `json:"a"`
				B map[int]string `json:"b"`
				C time.Duration  `json:"c"`
				D secret         `json:"d"`
			}, nothing]](nil, named("A"))
		}, []string{
			where + ".spec.a: values of type func() have no form in JSON",
			where + ".spec.b: the keys of a map are text (want map[string]…, found map[int]string)",
			where + ".spec.c: a time.Duration is a number of nanoseconds in JSON (want metav1.Duration, or an integer)",
			where + ".spec.d: the type crd_test.secret encodes itself, so its fields do not say its form (want a tag such as `schema:\"string\"`)",
		}},
		"what is no struct":   {func() (*dsl.Resource, error) { return described[string](nil) }, []string{where + ".kind: want a kind in CamelCase, as in WebApp", where + ": want a struct with the fields of the object, found the type string"}},
		"a type without name": {func() (*dsl.Resource, error) { return described[struct{}](nil) }, []string{where + ".kind: the type struct {} has no name, so there is no kind"}},
		"two descriptions": {func() (*dsl.Resource, error) {
			return described[webAppSpec](func(r *dsl.Resource) { crd.Describe[webAppSpec](r) }, named("A"))
		}, []string{where + ": there is a schema already"}},
		"a form beside the type": {func() (*dsl.Resource, error) {
			return described[webAppSpec](nil, named("A"), func(s *crd.Schema) { s.Spec = crd.Fields{} })
		}, []string{where + ".spec: the Go type says this"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test.describe()
			if err == nil {
				t.Fatal("it is no fault")
			}
			got := strings.Split(err.Error(), "\n")
			slices.Sort(got)
			slices.Sort(test.want)
			mustEqual(t, "the faults", test.want, got)
		})
	}
}

func TestANameWithoutAGroupIsAFaultOfADescription(t *testing.T) {
	op := dsl.New("demo")
	op.Resource("webapps", func(r *dsl.Resource) {
		crd.Describe[object[nothing, nothing]](r)
		r.OnCreate("greet", func(context.Context, *dsl.Request) error { return nil })
	})
	if err := op.Validate(); err == nil || !strings.Contains(err.Error(), "schema: a resource with a schema is in an API group of its own") {
		t.Errorf("got %v", err)
	}
}

// TestWhatIsDeclaredAfterTheDescriptionIsInIt holds for a machine that comes when the resource is there.
func TestWhatIsDeclaredAfterTheDescriptionIsInIt(t *testing.T) {
	r, err := described[object[webAppSpec, webAppStatus]](nil, named("WebApp"))
	if err != nil {
		t.Fatal(err)
	}
	r.Machine(dsl.Machine{States: []dsl.State{{Name: "Open", Terminal: true}}})
	if status := properties(t, r.CRD, "status"); status[dsl.BookState] == nil {
		t.Errorf("the status is %v", status)
	}
}
