// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func nothing(context.Context, *Request) error { return nil }

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		define func(*Resource)
		want   string
	}{
		"a plain handler is well":             {func(r *Resource) { r.OnCreate("h", nothing) }, ""},
		"every verb is well":                  {everyVerb, ""},
		"a resource wants handlers":           {func(*Resource) {}, "handlers: want at least one"},
		"ids are unique":                      {func(r *Resource) { r.OnCreate("h", nothing); r.OnUpdate("h", nothing) }, "used twice"},
		"ids are names":                       {func(r *Resource) { r.OnCreate("h/x", nothing) }, "id: want letters"},
		"a handler wants causes":              {func(r *Resource) { r.On(nil, "h", nothing) }, "no causes"},
		"causes are known":                    {func(r *Resource) { r.On([]Cause{Create, "creat"}, "h", nothing) }, `unknown cause "creat"`},
		"a resync handler wants a period":     {func(r *Resource) { r.OnResync("h", nothing) }, "no resync period"},
		"a child handler wants children":      {func(r *Resource) { r.OnChild("h", nothing) }, "the resource owns nothing"},
		"an id of before is no other's":       {func(r *Resource) { r.OnCreate("h", nothing, Was("g")); r.OnCreate("g", nothing) }, "was[0]: a handler has this id"},
		"nor the handler's own":               {func(r *Resource) { r.OnCreate("h", nothing, Was("h")) }, "was[0]: a handler has this id"},
		"nor was it another one's":            {func(r *Resource) { r.OnCreate("h", nothing, Was("o")); r.OnCreate("g", nothing, Was("o")) }, "was[0]: another handler had this id, too"},
		"it is named once":                    {func(r *Resource) { r.OnCreate("h", nothing, Was("o", "o")) }, "was[1]: the id is named twice"},
		"it is an id":                         {func(r *Resource) { r.OnCreate("h", nothing, Was("a b")) }, "was[0]: want letters"},
		"after names an earlier handler":      {func(r *Resource) { r.OnCreate("h", nothing, After("later")); r.OnCreate("later", nothing) }, "is declared later"},
		"finalizer options are for deletion":  {func(r *Resource) { r.OnCreate("h", nothing, Release()) }, "onFailure: is only for handlers with cause delete"},
		"a field path is read":                {func(r *Resource) { r.OnField("spec[0]", "h", nothing) }, "reading field path"},
		"an owned resource is read":           {func(r *Resource) { r.Owns("Widget"); r.OnCreate("h", nothing) }, "owns: reading resource"},
		"a label selector is read":            {func(r *Resource) { r.LabelSelector = "a in"; r.OnCreate("h", nothing) }, "label selector"},
		"a field selector is read":            {func(r *Resource) { r.FieldSelector = "a~b"; r.OnCreate("h", nothing) }, "field selector"},
		"a cache profile is known":            {func(r *Resource) { r.Cache = "huge"; r.OnCreate("h", nothing) }, `cache: unknown cache profile "huge"`},
		"retries are not negative":            {func(r *Resource) { r.OnCreate("h", nothing, Retries(-5)) }, "must not be negative"},
		"a reconcile handler needs no resync": {func(r *Resource) { r.OnReconcile("h", nothing) }, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			op := New("test")
			op.Resource("foos.v1.example.com", tt.define)
			err := op.Validate()
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Validate() = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestAnOperatorHadNames(t *testing.T) {
	tests := map[string]struct {
		domain string
		was    []string
		want   string
		// prefixes are those of the earlier names.
		prefixes []string
	}{
		"a name has the domain that the operator has": {"example.com", []string{"old"}, "", []string{"old.example.com"}},
		"a whole prefix has its own domain":           {"example.com", []string{"op.handwerk.dev", "old.shop.org"}, "", []string{"op.handwerk.dev", "old.shop.org"}},
		"a name that cannot be":                       {"", []string{"Old"}, `metadata.was[0]: want a name that the operator had, as in old-name, or a prefix, as in old-name.example.com, found "Old": a lowercase`, nil},
		"an empty one":                                {"", []string{""}, `metadata.was[0]: want a name that the operator had`, nil},
		"a prefix with a faulty domain":               {"", []string{"old.-"}, `metadata.was[0]: want a prefix that the operator had, as in old-name.example.com, found "old.-": a lowercase`, nil},
		"a whole key":                                 {"", []string{"old.handwerk.dev/finalizer"}, `metadata.was[0]: want a name or a prefix without a slash, found "old.handwerk.dev/finalizer" (did you mean "old.handwerk.dev", without "/finalizer"?)`, nil},
		"the name of now":                             {"", []string{"op"}, `metadata.was[0]: "op" is the present name of the operator (prefix op.handwerk.dev)`, nil},
		"the prefix of now":                           {"example.com", []string{"old", "op.example.com"}, `metadata.was[1]: "op.example.com" is the present name of the operator`, nil},
		"one twice":                                   {"", []string{"old", "old.handwerk.dev"}, `metadata.was[1]: the name is given twice`, nil},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			op := New("op")
			op.Domain, op.Was = test.domain, test.was
			op.Resource("pods", func(r *Resource) { r.OnCreate("h", nothing) })
			err := op.Validate()
			if test.want == "" != (err == nil) || err != nil && (!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("Validate() = %v, want %q", err, test.want)
			}
			var prefixes []string
			for _, earlier := range op.Earlier() {
				prefixes = append(prefixes, earlier.Prefix())
			}
			if err == nil && !slices.Equal(prefixes, test.prefixes) {
				t.Errorf("its earlier prefixes are %v, want %v", prefixes, test.prefixes)
			}
		})
	}
}

func everyVerb(r *Resource) {
	r.Resync = time.Minute
	r.Owns("pods.v1")
	r.OnCreate("a", nothing)
	r.OnUpdate("b", nothing, After("a"))
	r.OnField("spec.x", "c", nothing)
	r.OnDelete("d", nothing, NoFinalizer())
	r.OnResume("e", nothing)
	r.OnResync("f", nothing)
	r.OnChild("g", nothing)
	r.OnReconcile("h", nothing)
}

func TestValidateReportsEveryFault(t *testing.T) {
	op := New("Not A Name")
	op.Resource("foos", nil)
	op.Resource("foos", func(r *Resource) { r.OnCreate("h", nothing) })
	err := op.Validate()
	for _, want := range []string{"metadata.name: want a DNS label", "foos: handlers: want at least one", "declared twice"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Validate() = %v, want %q", err, want)
		}
	}
}

func TestAnOperatorHasAName(t *testing.T) {
	tests := map[string]struct{ name, domain, want string }{
		"a name":                         {"op", "", ""},
		"a name and a domain":            {"op", "example.com", ""},
		"none says where to set it":      {"", "", "operator: metadata.name: it has no name: set Operator.Name (metadata.name in YAML)"},
		"a faulty one is reported alone": {"A", "", `operator: metadata.name: want a DNS label, found "A": a lowercase RFC 1123 label`},
		"a faulty domain":                {"op", "-", `operator: metadata.domain: want a DNS name, found "-": a lowercase RFC 1123 subdomain`},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			op := New(test.name)
			op.Domain = test.domain
			op.Resource("pods", func(r *Resource) { r.OnCreate("h", nothing) })
			got := ""
			if err := op.Validate(); err != nil {
				got = err.Error()
			}
			if !strings.HasPrefix(got, test.want) || test.want == "" && got != "" || strings.Contains(got, "\n") {
				t.Errorf("Validate() = %q, want %q", got, test.want)
			}
		})
	}
}

func TestObjectsAreDeclaredOnce(t *testing.T) {
	tests := map[string]struct {
		first, second string
		want          string // empty: both may be there
	}{
		"the same spelling":                    {"pods.v1", "pods.v1", "resource pods.v1: pods.v1 is declared twice: put the handlers of both under one"},
		"with and without a version":           {"pods", "pods.v1", "resource pods.v1: pods.v1 has the same objects as pods: put the handlers of both under one"},
		"without and with a version":           {"foos.v1.example.com", "foos.example.com", "resource foos.example.com: foos.example.com has the same objects as foos.v1.example.com: put the handlers of both under one"},
		"two versions":                         {"foos.v1.example.com", "foos.v1beta1.example.com", "resource foos.v1beta1.example.com: foos.v1beta1.example.com has the same objects as foos.v1.example.com: put the handlers of both under one"},
		"Events of both groups":                {"events.v1", "events.events.k8s.io", "resource events.events.k8s.io: events.events.k8s.io has the same objects as events.v1: put the handlers of both under one"},
		"two groups with a plural in common":   {"foos.example.com", "foos.example.org", ""},
		"two plurals of a group":               {"foos.v1.example.com", "bars.v1.example.com", ""},
		"a plural that the core group has too": {"pods.v1", "pods.v1beta1.metrics.k8s.io", ""},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			op := New("op")
			for _, name := range []string{test.first, test.second} {
				op.Resource(name, func(r *Resource) { r.OnCreate("h", nothing) })
			}
			got := ""
			if err := op.Validate(); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("Validate() = %q, want %q", got, test.want)
			}
		})
	}
}

func TestMarksDeriveFromTheName(t *testing.T) {
	op := New("foo")
	if got := op.Finalizer() + " " + op.StateAnnotation(); got != "foo.handwerk.dev/finalizer foo.handwerk.dev/state" {
		t.Error(got)
	}
	op.Domain = "example.com"
	if got := op.Finalizer(); got != "foo.example.com/finalizer" {
		t.Error(got)
	}
}

func TestErrors(t *testing.T) {
	base := errors.New("x")
	if after, ok := IsTemporary(fmt.Errorf("y: %w", Temporary(base, time.Minute))); !ok || after != time.Minute {
		t.Errorf("temporary after %s, %v", after, ok)
	}
	if !IsPermanent(fmt.Errorf("y: %w", Permanent(base))) || IsPermanent(base) || IsPermanent(nil) {
		t.Error("permanent errors are not distinguished from others")
	}
	if Temporary(nil, time.Second) != nil || Permanent(nil) != nil {
		t.Error("no error became one")
	}
	if !errors.Is(Permanent(base), base) || !errors.Is(&NotOwnedError{Resource: "Pod", Name: "p"}, ErrNotOwned) {
		t.Error("the cause is lost")
	}
}

func TestPatch(t *testing.T) {
	p := NewPatch()
	p.Set("spec.replicas", 3)
	p.Set("spec.template", struct {
		Name string `json:"name"`
	}{"n"})
	p.Remove("spec.old")
	p.Label("a/b", "c")
	p.Annotate("d.e", "f")
	p.SetStatus("phase", "Ready")
	p.SetCondition("Ready", metav1.ConditionFalse, "First", "")
	p.SetCondition("Ready", metav1.ConditionTrue, "Last", "")
	want := map[string]any{
		"spec":     map[string]any{"replicas": int64(3), "template": map[string]any{"name": "n"}, "old": nil},
		"metadata": map[string]any{"labels": map[string]any{"a/b": "c"}, "annotations": map[string]any{"d.e": "f"}},
	}
	if diff := cmp.Diff(want, p.Object); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"phase": "Ready"}, p.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if len(p.Conditions) != 1 || p.Conditions[0].Reason != "Last" || p.Err() != nil {
		t.Errorf("conditions %v, fault %v", p.Conditions, p.Err())
	}
}

func TestPatchesAreJoined(t *testing.T) {
	first, second, all := NewPatch(), NewPatch(), NewPatch()
	first.Label("side", "left")
	first.Set("spec.a", 1)
	second.Label("side", "right")
	second.Set("spec.b", 2)
	second.SetStatus("x", true)
	all.Join(first)
	all.Join(second)
	want := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"side": "right"}},
		"spec":     map[string]any{"a": int64(1), "b": int64(2)},
	}
	if diff := cmp.Diff(want, all.Object); diff != "" || all.Status["x"] != true {
		t.Errorf("status %v, object (-want +got):\n%s", all.Status, diff)
	}
	if side, _ := MustParsePath("metadata.labels.side").In(first.Object); side != "left" {
		t.Error("what was joined has changed")
	}
}

func TestWhatAPatchRemovesStaysRemovedWhenItIsJoined(t *testing.T) {
	config := func(fields ...any) map[string]any {
		spec := map[string]any{"config": nil}
		if len(fields) > 0 {
			spec["config"] = map[string]any{fields[0].(string): fields[1]}
		}
		return map[string]any{"spec": spec}
	}
	removes, sets, again, other := NewPatch(), NewPatch(), NewPatch(), NewPatch()
	removes.Remove("spec.config")
	sets.Set("spec.config.new", "x")
	again.Join(removes)
	again.Join(sets)
	other.Remove("spec.config.old")
	tests := map[string]struct {
		parts    []*Patch
		object   map[string]any
		replaced []Path
	}{
		"a field is set below it":                     {[]*Patch{removes, sets}, config("new", "x"), []Path{{"spec", "config"}}},
		"a field is removed below it":                 {[]*Patch{removes, other}, config(), nil},
		"a field was set below it before":             {[]*Patch{sets, removes}, config(), nil},
		"the one that is laid over it was joined too": {[]*Patch{other, again}, config("new", "x"), []Path{{"spec", "config"}}},
		"fields are merged where nothing is removed":  {[]*Patch{sets, sets}, config("new", "x"), nil},
	}
	for name, tt := range tests {
		all := NewPatch()
		for _, p := range tt.parts {
			all.Join(p)
		}
		if diff := cmp.Diff(tt.object, all.Object); diff != "" || !cmp.Equal(tt.replaced, all.Replaced) {
			t.Errorf("%s: replaced %v, object (-want +got):\n%s", name, all.Replaced, diff)
		}
	}
}

func TestPatchRemembersFaults(t *testing.T) {
	for name, fault := range map[string]func(*Patch){
		"an invalid path":             func(p *Patch) { p.Set("a b", 1) },
		"status by way of Set":        func(p *Patch) { p.Set("status.x", 1) },
		"the kind":                    func(p *Patch) { p.Set("kind", "x") },
		"a value that is not JSON":    func(p *Patch) { p.SetStatus("x", func() {}) },
		"a map where a value was set": func(p *Patch) { p.Set("a", 1); p.Set("a.b", 1) },
	} {
		p := NewPatch()
		if fault(p); p.Err() == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestInto(t *testing.T) {
	r := &Subject{Object: &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"name": "n", "count": int64(2)}, "text": "t",
	}}}
	var spec struct {
		Name  string
		Count int

		hidden bool // encoding/json leaves it alone
	}
	if err := r.Into("spec", &spec); err != nil || spec.hidden || spec.Name != "n" || spec.Count != 2 {
		t.Errorf("spec = %+v, %v", spec, err)
	}
	if err := r.Into("missing", &spec); err != nil || spec.Name != "n" {
		t.Errorf("a missing section changed %+v, %v", spec, err)
	}
	if err := r.Into("text", &spec); err == nil {
		t.Error("a text was decoded into a struct")
	}
	r.Object.Object["spec"].(map[string]any)["count"] = "two"
	if err := r.Into("spec", &spec); err == nil || !strings.Contains(err.Error(), "decoding spec") {
		t.Errorf("a wrong type gives %v", err)
	}
}

func TestWhenJoinsByAnd(t *testing.T) {
	yes := func(*Subject) (bool, error) { return true, nil }
	no := func(*Subject) (bool, error) { return false, nil }
	for _, tt := range []struct {
		a, b Predicate
		want bool
	}{{yes, yes, true}, {yes, no, false}, {no, yes, false}} {
		r := New("op").Resource("pods", nil)
		r.OnCreate("h", nothing, When(tt.a), When(tt.b))
		if got, err := r.Handlers()[0].When(nil); got != tt.want || err != nil {
			t.Errorf("When = %v, %v, want %v", got, err, tt.want)
		}
	}
}
