// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"math"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/handwerk-dev/handwerk/dsl"
)

var foos = schema.GroupVersion{Group: "example.com", Version: "v1"}

func parse(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatalf("reading %s: %v", text, err)
	}
	return u
}

// sample is an object of about 1.5 KB without its managedFields, as they come: half of it
// metadata, the rest in small maps.
func sample(t testing.TB) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile("../../../dsl/plain/scan/testdata/foo.json")
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(text))
}

// as is the object as a client gets it: whole, or its metadata as a server sends it alone.
func as(u *unstructured.Unstructured, partial bool) runtime.Object {
	if !partial {
		return u.DeepCopy()
	}
	var p metav1.PartialObjectMetadata
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.DeepCopy().Object, &p); err != nil {
		panic(err)
	}
	p.TypeMeta = metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
	return &p
}

func wantSame(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// hold makes the object that a cache would hold of in, twice over: client-go transforms again
// what it has transformed.
func hold(t testing.TB, form Form, in any) *Object {
	t.Helper()
	transformer, err := new(Compressor).NewTransformer(form.WithDefaults(), foos, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	once, err := transformer.Transform(in)
	if err != nil {
		t.Fatal(err)
	}
	twice, err := transformer.Transform(once)
	if err != nil || twice != once {
		t.Fatalf("transforming again gives %v, %v, want what was given", twice, err)
	}
	o, ok := once.(*Object)
	if !ok {
		t.Fatalf("transforming gives a %T", once)
	}
	return o
}

func TestTreesAreWhatCameFromTheServer(t *testing.T) {
	tests := map[string]string{
		"nothing":             `{}`,
		"null and empty":      `{"spec":{"a":null,"b":{},"c":[],"d":"","e":[null,{},[]]}}`,
		"integers":            `{"spec":[0,-0,1,-1,9223372036854775807,-9223372036854775808]}`,
		"too big integers":    `{"spec":[9223372036854775808,-9223372036854775809,18446744073709551615,123456789012345678901234567890]}`,
		"floats":              `{"spec":[0.0,-0.0,1.0,1.5,0.1,1e3,1e-7,1e20,1e21,1e22,1.7976931348623157e308,5e-324,100000000000000000000.0]}`,
		"booleans":            `{"spec":[true,false]}`,
		"escapes":             `{"spec":{"a\"b\\c\/d":"\"\\\/\b\f\n\r\t\u0000\u001f\u007f"}}`,
		"HTML":                `{"spec":{"<a href='x'>&":"<script>&amp;</script>"}}`,
		"Unicode":             `{"spec":{"grün":"日本語 🛠 \ud83d\udee0 \u2028\u2029 \ufffd"}}`,
		"lone surrogates":     `{"spec":"\ud83d x \udee0"}`,
		"braces in strings":   `{"spec":{"a{":"{","b":"{","c":"[,"}}`,
		"metadata elsewhere":  `{"spec":{"metadata":{"managedFields":[1]},"managedFields":[2]}}`,
		"metadata of no kind": `{"metadata":"x"}`,
		"metadata":            `{"metadata":{"name":"a","labels":{"b":"c"},"annotations":{"d":"{\"e\":\"f\"}"},"z":null}}`,
		"deep":                `{"a":{"b":{"c":{"d":[[[[{"e":{"f":1}}]]]],"z":1},"z":1},"z":1},"z":1}`,
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			want := parse(t, text)
			o := hold(t, Form{}, parse(t, text))
			if diff := cmp.Diff(want, o.Tree()); diff != "" {
				t.Errorf("tree (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzTree(f *testing.F) {
	f.Add(`{"metadata":{"name":"a"},"spec":{"a":[1,2.5,"x",null,true]}}`)
	f.Add(`{"a":1e400,"b":-0.0,"c":"\u00e9\ud800"}`)
	f.Fuzz(func(t *testing.T, text string) {
		want := &unstructured.Unstructured{}
		if utiljson.Unmarshal([]byte(text), &want.Object) != nil || want.Object == nil {
			t.Skip("it is not an object")
		}
		if m, ok := want.Object["metadata"].(map[string]any); ok {
			delete(m, "managedFields")
		}
		if diff := cmp.Diff(want, hold(t, Form{}, parse(t, text)).Tree()); diff != "" {
			t.Errorf("tree (-want +got):\n%s", diff)
		}
	})
}

func TestStringsThatAreNotUTF8AreMended(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": "a\xffb\xc3"}}
	wantSame(t, "a\ufffdb\ufffd", hold(t, Form{}, u).Tree().Object["spec"].(string))
}

func TestManagedFieldsOfMarkersAreHeld(t *testing.T) {
	const text = `{"apiVersion":"v1","kind":"Foo","metadata":{"name":"a","managedFields":[
		{"manager":"kubectl","operation":"Apply","fieldsV1":{"f:a":{}}},
		{"manager":"foo/1","operation":"Apply","fieldsV1":{"f:b":{}}},
		{"manager":"foo","operation":"Apply","fieldsV1":{"f:b":{}}},
		{"manager":"foo/2","operation":"Update","subresource":"status","fieldsV1":{"f:c":{}}}]}}`
	tests := map[string][]string{"": nil, "other/": nil, "kubectl": {"Apply"}, "foo/": {"Apply", "Update"}, "x/,foo/": {"Apply", "Update"}}
	for _, profile := range []dsl.CacheProfile{dsl.CacheCompact, dsl.CacheMetadata} {
		for markers, want := range tests {
			t.Run(string(profile)+" "+markers, func(t *testing.T) {
				u := parse(t, text)
				before := u.DeepCopy()
				o := hold(t, Form{Profile: profile, Markers: markers}, as(u, profile == dsl.CacheMetadata))
				var got []string
				for _, f := range o.Tree().GetManagedFields() {
					got = append(got, string(f.Operation))
				}
				wantSame(t, want, got)
				wantSame(t, len(want), len(o.GetManagedFields()))
				if _, found, _ := unstructured.NestedSlice(o.Tree().Object, "metadata", "managedFields"); found != (len(want) > 0) {
					t.Errorf("the tree has managedFields: %t", found)
				}
				wantSame(t, before, u) // the client's object must not change
			})
		}
	}
}

func TestKeepHoldsThePathsAlone(t *testing.T) {
	const text = `{"apiVersion":"v1","kind":"Foo","metadata":{"name":"a","labels":{"x":"y"}},
		"spec":{"replicas":3,"image":"x","template":{"a":1,"b":{"c":2}},"list":[{"a":1}]},
		"data":{"a,b":"1","c.d":"2","e":"3"},"status":{"ready":true}}`
	const head = `{"apiVersion":"v1","kind":"Foo","metadata":{"name":"a","labels":{"x":"y"}}`
	tests := map[string]struct {
		keep []string
		want string
	}{
		"one field":                    {[]string{"spec.replicas"}, head + `,"spec":{"replicas":3}}`},
		"two fields of one map":        {[]string{"spec.replicas", "spec.template.a"}, head + `,"spec":{"replicas":3,"template":{"a":1}}}`},
		"a map":                        {[]string{"spec.template"}, head + `,"spec":{"template":{"a":1,"b":{"c":2}}}}`},
		"a map and a field of it":      {[]string{"spec.template.a", "spec.template"}, head + `,"spec":{"template":{"a":1,"b":{"c":2}}}}`},
		"a field and the map of it":    {[]string{"status", "status.ready"}, head + `,"status":{"ready":true}}`},
		"a path into a list":           {[]string{"spec.list.a"}, head + `,"spec":{}}`},
		"a path into a scalar":         {[]string{"status.ready.x"}, head + `,"status":{}}`},
		"a path that leads nowhere":    {[]string{"nothing.here"}, head + `}`},
		"a part of metadata, held all": {[]string{"metadata.labels"}, head + `}`},
		"keys with dots and commas":    {[]string{`data["a,b"]`, `data["c.d"]`}, head + `,"data":{"a,b":"1","c.d":"2"}}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var paths []dsl.Path
			for _, p := range tt.keep {
				paths = append(paths, dsl.MustParsePath(p))
			}
			o := hold(t, Form{Keep: FormatPaths(paths)}, parse(t, text))
			if diff := cmp.Diff(parse(t, tt.want), o.Tree()); diff != "" {
				t.Errorf("tree (-want +got):\n%s", diff)
			}
			wantSame(t, map[string]string{"x": "y"}, o.GetLabels())
		})
	}
}

func TestKeepDoesNotDependOnOrder(t *testing.T) {
	a, b := dsl.MustParsePath("spec.a"), dsl.MustParsePath("spec.b")
	wantSame(t, "spec.a,spec.b", FormatPaths([]dsl.Path{b, a, b}))
	wantSame(t, "", FormatPaths(nil))
}

// Whatever reads an object through metav1.Object must see what an Unstructured shows.
func TestObjectsReadLikeUnstructured(t *testing.T) {
	u := sample(t)
	now := metav1.NewTime(time.Unix(1700000000, 0))
	seconds := int64(30)
	u.SetDeletionTimestamp(&now)
	u.SetDeletionGracePeriodSeconds(&seconds)
	u.SetGenerateName("foo-")
	u.SetOwnerReferences(append(u.GetOwnerReferences(), metav1.OwnerReference{APIVersion: "v1", Kind: "Other", Name: "o", UID: "u"}))
	unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	// Absent and false mean the same in an owner reference.
	want := u.DeepCopy()
	no := false
	refs := want.GetOwnerReferences()
	refs[1].Controller, refs[1].BlockOwnerDeletion = &no, &no
	want.SetOwnerReferences(refs)

	for _, profile := range []dsl.CacheProfile{dsl.CacheCompact, dsl.CacheMetadata} {
		t.Run(string(profile), func(t *testing.T) {
			o := hold(t, Form{Profile: profile, Kind: "Foo"}, as(u, profile == dsl.CacheMetadata))
			for _, field := range getters {
				w := reflect.ValueOf(metav1.Object(want)).MethodByName(field).Call(nil)[0].Interface()
				g := reflect.ValueOf(metav1.Object(o)).MethodByName(field).Call(nil)[0].Interface()
				if diff := cmp.Diff(w, g); diff != "" {
					t.Errorf("%s (-want +got):\n%s", field, diff)
				}
			}
			wantSame(t, want.GroupVersionKind(), o.GroupVersionKind())
			wantSame(t, want.GroupVersionKind(), o.GetObjectKind().GroupVersionKind())
			wantSame(t, o.Tree(), o.DeepCopyObject().(*Object).Tree())
		})
	}
}

var getters = []string{
	"GetNamespace", "GetName", "GetGenerateName", "GetUID", "GetResourceVersion", "GetGeneration", "GetSelfLink",
	"GetCreationTimestamp", "GetDeletionTimestamp", "GetDeletionGracePeriodSeconds", "GetLabels", "GetAnnotations",
	"GetFinalizers", "GetOwnerReferences", "GetManagedFields",
}

func TestObjectsDoNotChange(t *testing.T) {
	u := sample(t)
	o := hold(t, Form{}, u)
	before := o.Tree()
	o.SetName("x")
	o.SetLabels(map[string]string{"x": "y"})
	o.Tree().SetName("y")
	o.GetLabels()["app.kubernetes.io/name"] = "z"
	*o.GetOwnerReferences()[0].Controller = false
	u.SetName("z")
	wantSame(t, before, o.Tree())
	wantSame(t, before.GetName(), o.GetName())
	wantSame(t, true, *o.GetOwnerReferences()[0].Controller)
}

func TestMetadataAlone(t *testing.T) {
	u := sample(t)
	want := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Foo", "metadata": u.DeepCopy().Object["metadata"],
	}}
	unstructured.RemoveNestedField(want.Object, "metadata", "managedFields")
	o := hold(t, Form{Profile: dsl.CacheMetadata, Kind: "Foo"}, as(u, true))
	wantSame(t, want, o.Tree())
	if o.Size() == 0 {
		t.Error("its size is zero")
	}

	fake := as(u, true).(*metav1.PartialObjectMetadata)
	fake.TypeMeta = metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Bar"}
	wantSame(t, "Bar", hold(t, Form{Profile: dsl.CacheMetadata}, fake).Tree().GetKind())
	wantSame(t, "Foo", hold(t, Form{Profile: dsl.CacheMetadata, Kind: "Foo"}, fake).Tree().GetKind())

	delete(want.Object, "kind")
	wantSame(t, want, hold(t, Form{Profile: dsl.CacheMetadata}, as(u, true)).Tree())
}

func TestLiveHoldsWhatRoutingNeeds(t *testing.T) {
	u := sample(t)
	o := hold(t, Form{Profile: dsl.CacheLive, Kind: "Foo"}, as(u, true))
	if o.Tree() != nil || o.Size() != 0 || o.GetLabels() != nil {
		t.Errorf("it holds %d bytes", o.Size())
	}
	wantSame(t, u.GetUID(), o.GetUID())
	wantSame(t, u.GetOwnerReferences(), o.GetOwnerReferences())
	wantSame(t, u.GroupVersionKind(), o.GroupVersionKind())
}

// An error would lose the event.
func TestWhatHasNoJSONIsHeldLikeLive(t *testing.T) {
	for name, value := range map[string]any{"not a number": math.NaN(), "a function": func() {}} {
		t.Run(name, func(t *testing.T) {
			u := sample(t)
			u.Object["spec"] = value
			o := hold(t, Form{}, u)
			if o.Tree() != nil {
				t.Errorf("there is the tree %v", o.Tree())
			}
			wantSame(t, u.GetUID(), o.GetUID())
		})
	}
	transformer, err := new(Compressor).NewTransformer(Form{}, foos, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	if out, err := transformer.Transform("neither"); out != "neither" || err != nil {
		t.Errorf("what is no object becomes %v, %v", out, err)
	}
}

func TestTypesThatNoDecoderMakesAreEncoded(t *testing.T) {
	u := sample(t)
	u.Object["spec"] = map[string]any{"a": int32(1), "b": []string{"x"}, "c": map[string]any(nil), "d": []any(nil)}
	want := map[string]any{"a": int64(1), "b": []any{"x"}, "c": nil, "d": nil}
	wantSame(t, want, hold(t, Form{}, u).Tree().Object["spec"].(map[string]any))
}

// TestShownIsWhatTheCacheShows holds that an object of the server, shown, is the tree that the cache has.
func TestShownIsWhatTheCacheShows(t *testing.T) {
	for name, form := range map[string]Form{
		"whole":    {},
		"a path":   {Keep: "spec.template.env,status"},
		"metadata": {Profile: dsl.CacheMetadata, Kind: "Foo", Keep: "spec.replicas"},
	} {
		t.Run(name, func(t *testing.T) {
			u := sample(t)
			unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
			wantSame(t, hold(t, form, as(u, form.Profile == dsl.CacheMetadata)).Tree(), form.Shows()(u))
		})
	}
}
