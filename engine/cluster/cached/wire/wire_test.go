// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

var foos = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "foos"}

func transformer(t testing.TB) *cached.Transformer {
	t.Helper()
	out, err := new(cached.Compressor).NewTransformer(cached.Form{Markers: "foo"}.WithDefaults(), foos.GroupVersion(), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// held is an object as a cache holds it, whatever client it came through.
func held(t testing.TB, in runtime.Object) any {
	t.Helper()
	u, is := in.(*unstructured.Unstructured)
	if !is {
		return in
	}
	out, err := transformer(t).Transform(u)
	if err != nil {
		t.Fatal(err)
	}
	o := out.(*cached.Object)
	return map[string]any{
		"tree": o.Tree(), "gvk": o.GroupVersionKind(), "uid": o.GetUID(), "name": o.GetName(), "namespace": o.GetNamespace(), "version": o.GetResourceVersion(),
		"labels": o.GetLabels(), "annotations": o.GetAnnotations(), "owners": o.GetOwnerReferences(), "fields": o.GetManagedFields(), "generation": o.GetGeneration(),
		"notes before": u.GetAnnotations()[metav1.InitialEventsAnnotationKey], "key": cache.MetaObjectToName(u).String(), "version before": u.GetResourceVersion(), "table": u.GroupVersionKind(),
	}
}

// clients are the dynamic client and ours of a server.
func clients(t testing.TB, serve http.HandlerFunc) map[string]dynamic.Interface {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, QPS: -1}
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	stock, err := dynamic.NewForConfigAndClient(config, h)
	if err != nil {
		t.Fatal(err)
	}
	caching, err := NewCaching(config, h)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := caching.Cutting(transformer(t).Convert)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := New(config, h)
	if err != nil {
		t.Fatal(err)
	}
	slim, err := NewSlim(config, h)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]dynamic.Interface{"stock": stock, "ours": ours, "whole": whole, "slim": slim}
}

const foo = `{"apiVersion":"example.com/v1","kind":"Foo","metadata":{"annotations":{"a":"{\"b\":\"\u003cc\u003e\"}"},"creationTimestamp":"2026-01-02T03:04:05Z","generation":2,` +
	`"labels":{"x":"y"},"managedFields":[{"manager":"kubectl","operation":"Apply","fieldsV1":{"f:spec":{}}},{"manager":"foo","operation":"Update","fieldsV1":{"f:status":{}}}],` +
	`"name":"a","namespace":"default","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"o","uid":"u-2","controller":true}],"resourceVersion":"12","uid":"u-1"},` +
	`"spec":{"n":9007199254740993,"f":1.0,"list":[1,"x",null,{"y":[]}]},"status":{"ready":true}}`

func event(kind, object string) string { return `{"type":"` + kind + `","object":` + object + "}\n" }

// streams are bodies of watches: what servers send, and what they do not.
func streams() map[string]string {
	bookmark := `{"apiVersion":"example.com/v1","kind":"Foo","metadata":{"resourceVersion":"13","creationTimestamp":null,"annotations":{"k8s.io/initial-events-end":"true"}}}`
	gone := `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}`
	return map[string]string{
		"nothing":                               "",
		"events":                                event("ADDED", foo) + event("MODIFIED", foo) + event("DELETED", foo),
		"a bookmark":                            event("ADDED", foo) + event("BOOKMARK", bookmark) + event("MODIFIED", foo),
		"a bookmark with a uid":                 event("BOOKMARK", strings.Replace(bookmark, `"resourceVersion"`, `"uid":"u","resourceVersion"`, 1)),
		"an error":                              event("ADDED", foo) + event("ERROR", gone),
		"a Table":                               event("ADDED", `{"apiVersion":"meta.k8s.io/v1","kind":"Table","metadata":{"resourceVersion":"1"},"rows":[]}`),
		"no newlines":                           strings.ReplaceAll(event("ADDED", foo)+event("DELETED", foo), "\n", ""),
		"blank lines and spaces":                "\n \r\n" + event("ADDED", foo) + "\n\n\t" + event("DELETED", foo) + " ",
		"spaces in an event":                    `{ "type" : "ADDED" , "object" : ` + foo + ` }`,
		"the object before the type":            `{"object":` + foo + `,"type":"ADDED"}`,
		"more in an event":                      `{"type":"ADDED","object":` + foo + `,"more":{"type":"DELETED"}}`,
		"an indented object":                    event("ADDED", strings.NewReplacer(`{`, "{\n  ", `,"`, ",\n  \"", `":`, `": `).Replace(`{"apiVersion":"v1","kind":"A","metadata":{"uid":"u","resourceVersion":"3","name":"n","managedFields":[{"manager":"x"}]}}`)),
		"escaped keys":                          event("ADDED", strings.Replace(foo, `"spec"`, `"sp\u0065c"`, 1)) + event("ADDED", strings.Replace(foo, `"metadata"`, `"met\u0061data"`, 1)),
		"keys that must be escaped":             event("ADDED", strings.Replace(foo, `"f:spec":{}`, `"f:spec":{"k:{\"name\":\"a\"}":{}}`, 1)) + event("ADDED", strings.Replace(foo, `"labels":{`, `"labels":{"a\\b\n":"1",`, 1)),
		"escaped values":                        event("ADDED", strings.Replace(foo, `"u-1"`, `"u\u002d1"`, 1)),
		"duplicate keys":                        event("ADDED", strings.Replace(foo, `"spec":`, `"spec":{"n":1},"spec":`, 1)) + event("ADDED", strings.Replace(foo, `"uid":`, `"uid":"first","uid":`, 1)),
		"two metadata":                          event("ADDED", strings.Replace(foo, `"metadata":`, `"metadata":{"name":"first","uid":"x"},"metadata":`, 1)),
		"text that is not UTF-8":                event("ADDED", strings.Replace(foo, `"x"`, "\"x\xff\xc3\"", 1)),
		"half a pair of surrogates":             event("ADDED", strings.Replace(foo, `"x"`, `"\ud83d"`, 1)),
		"no uid":                                event("ADDED", strings.Replace(foo, `,"uid":"u-1"`, ``, 1)),
		"no kind":                               event("ADDED", strings.Replace(foo, `"kind":"Foo",`, ``, 1)),
		"no apiVersion":                         event("ADDED", strings.Replace(foo, `"apiVersion":"example.com/v1",`, ``, 1)),
		"a number that no float holds":          event("ADDED", strings.Replace(foo, `1.0`, `1e999`, 1)),
		"a large number":                        event("ADDED", strings.Replace(foo, `1.0`, `1e100`, 1)),
		"nested deeply":                         event("ADDED", strings.Replace(foo, `1.0`, strings.Repeat(`[`, 2000)+strings.Repeat(`]`, 2000), 1)),
		"nested too deeply":                     event("ADDED", strings.Replace(foo, `1.0`, strings.Repeat(`[`, 20000)+strings.Repeat(`]`, 20000), 1)),
		"a large object":                        event("ADDED", strings.Replace(foo, `"x"`, `"`+strings.Repeat("x", 1500<<10)+`"`, 1)) + event("DELETED", foo),
		"too large an object":                   event("ADDED", strings.Replace(foo, `"x"`, `"`+strings.Repeat("x", 17<<20)+`"`, 1)) + event("DELETED", foo),
		"cut off in an object":                  event("ADDED", foo) + event("ADDED", foo)[:200],
		"cut off before the newline":            strings.TrimSpace(event("ADDED", foo)),
		"a type that is not known":              event("CHANGED", foo),
		"no type":                               `{"object":` + foo + `}`,
		"no object":                             `{"type":"ADDED"}`,
		"an object that is null":                event("ADDED", `null`),
		"an object that is a list":              event("ADDED", `[]`),
		"an empty object":                       event("ADDED", `{}`),
		"an HTML page":                          "<html>502 Bad Gateway</html>",
		"a number":                              "1\n" + event("ADDED", foo),
		"a wrong bracket":                       event("ADDED", strings.Replace(foo, `[1,"x"`, `(1,"x"`, 1)) + event("ADDED", foo),
		"a wrong bracket that balances":         event("ADDED", strings.Replace(foo, `[]}]`, `[]]}`, 1)) + event("ADDED", foo),
		"a control character":                   event("ADDED", strings.Replace(foo, `"x"`, "\"\x01\"", 1)) + event("ADDED", foo),
		"a broken object after one of its size": event("ADDED", foo) + event("ADDED", strings.Replace(foo, `"ready":true`, `"ready":trux`, 1)),
		"an irregular object after one of its size": event("ADDED", strings.Replace(foo, `"spec"`, `"specifi"`, 1)) + event("ADDED", strings.Replace(foo, `"spec"`, `"sp\u0065c"`, 1)),
		"types that are not known yet, or too long": event("ADDEDX", foo) + event("", foo) + event("added", foo),
		"an escaped type":                    event(`ADD\u0045D`, foo),
		"a trailing comma":                   event("ADDED", strings.Replace(foo, `"ready":true`, `"ready":true,`, 1)) + event("ADDED", foo),
		"brackets and quotes in strings":     event("ADDED", strings.Replace(foo, `"x"`, `"}{][\\\"}{\\"`, 1)) + event("DELETED", foo),
		"metadata that is no object":         event("ADDED", `{"apiVersion":"v1","kind":"A","metadata":"x"}`),
		"managedFields that are not entries": event("ADDED", strings.Replace(foo, `"managedFields":[`, `"managedFields":[1,`, 1)),
	}
}

// brought are the events that a watch brought, the errors without their text: clients have their own.
func brought(t testing.TB, c dynamic.Interface) (out []any) {
	t.Helper()
	w, err := c.Resource(foos).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		return []any{"no watch"}
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if status, is := event.Object.(*metav1.Status); is && status.Reason != metav1.StatusReasonExpired {
			out = append(out, "a broken stream")
			continue
		}
		out = append(out, []any{event.Type, held(t, event.Object)})
	}
	return out
}

// TestWatchesBringWhatTheDynamicClientBrings holds that the stream means the same as to client-go's own decoders, whatever is sent.
func TestWatchesBringWhatTheDynamicClientBrings(t *testing.T) {
	for name, body := range streams() {
		t.Run(name, func(t *testing.T) {
			c := clients(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") && len(name)%2 == 0 {
					w.Header().Set("Content-Encoding", "gzip")
					z := gzip.NewWriter(w)
					defer func() { _ = z.Close() }()
					_, _ = io.WriteString(z, body)
					return
				}
				_, _ = io.WriteString(w, body)
			})
			stock := brought(t, c["stock"])
			for _, client := range []string{"ours", "whole"} {
				if ours := brought(t, c[client]); !reflect.DeepEqual(stock, ours) { // cmp takes minutes for what is nested deeply
					t.Errorf("%s (-dynamic client +ours):\n%s", client, cmp.Diff(stock, ours))
				}
			}
		})
	}
}

// TestAKindMayBeCalledStatus holds that a resource whose kind is called as the API machinery's Status is can be watched. The dynamic client
// takes its objects for that.
func TestAKindMayBeCalledStatus(t *testing.T) {
	c := clients(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, event("ADDED", strings.Replace(foo, `"Foo"`, `"Status"`, 1)))
		_, _ = io.WriteString(w, event("BOOKMARK", `{"apiVersion":"example.com/v1","kind":"Status","metadata":{"resourceVersion":"7"}}`))
	})
	if got := brought(t, c["ours"]); len(got) != 2 || slices.Contains(got, "a broken stream") {
		t.Errorf("it brought %v", got)
	}
}

// TestEventsComeWithoutANewline holds that an event is delivered when its object has ended, not when the next one begins.
func TestEventsComeWithoutANewline(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := clients(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, strings.TrimSpace(event("ADDED", foo)))
		_ = http.NewResponseController(w).Flush()
		<-ctx.Done()
	})
	defer cancel()
	w, err := c["ours"].Resource(foos).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if e := <-w.ResultChan(); e.Type != "ADDED" {
		t.Errorf("it delivered %v", e)
	}
}

// TestListsAreWhatTheDynamicClientLists holds the same of lists.
func TestListsAreWhatTheDynamicClientLists(t *testing.T) {
	bare := strings.Replace(foo, `"apiVersion":"example.com/v1","kind":"Foo",`, ``, 1)
	page := func(items string) string {
		return `{"apiVersion":"example.com/v1","kind":"FooList","metadata":{"resourceVersion":"20","continue":"next","remainingItemCount":7},"items":` + items + `}`
	}
	for name, body := range map[string]string{
		"items":                     page(`[` + foo + `,` + foo + `]`),
		"items without a kind":      page(`[` + bare + `, ` + strings.Replace(bare, `{`, "{\n ", 1) + `]`),
		"an item with half a kind":  page(`[` + strings.Replace(foo, `"kind":"Foo",`, ``, 1) + `]`),
		"no items":                  page(`[]`),
		"items that are null":       page(`null`),
		"the items first":           `{"items":[` + foo + `],"metadata":{"resourceVersion":"20"},"kind":"FooList","apiVersion":"example.com/v1"}`,
		"no kind":                   `{"metadata":{},"items":[` + foo + `]}`,
		"a kind with a quote":       `{"apiVersion":"a\"b","kind":"F\"List","metadata":{},"items":[` + bare + `]}`,
		"an item that is no object": page(`[1]`),
		"an escaped key":            page(`[` + strings.Replace(foo, `"spec"`, `"sp\u0065c"`, 1) + `]`),
		"more members":              strings.Replace(page(`[`+foo+`]`), `"items"`, `"extra":{"a":[1]},"items"`, 1),
		"a Status":                  `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Forbidden","code":403}`,
		"no JSON":                   `<html>`,
		"nothing":                   ``,
	} {
		t.Run(name, func(t *testing.T) {
			c := clients(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, body)
			})
			listed := map[string][]any{}
			for of, client := range c {
				list, err := client.Resource(foos).List(t.Context(), metav1.ListOptions{})
				if err != nil {
					listed[of] = []any{"failed", apierrors.ReasonForError(err)}
					continue
				}
				listed[of] = []any{list.Object}
				for i := range list.Items {
					listed[of] = append(listed[of], held(t, &list.Items[i]))
				}
			}
			for _, client := range []string{"ours", "whole"} {
				if diff := cmp.Diff(listed["stock"], listed[client]); diff != "" {
					t.Errorf("%s (-dynamic client +ours):\n%s", client, diff)
				}
			}
		})
	}
}

// TestWorkloadsAreCarried holds that no tree is made of an object with lists: managedFields have its items by keys with quotes in them.
func TestWorkloadsAreCarried(t *testing.T) {
	pod := strings.Replace(foo, `"f:spec":{}`, `"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:args":{"v:\"a\\\\b\"":{}}}}}`, 1)
	page := `{"apiVersion":"example.com/v1","kind":"FooList","metadata":{},"items":[` + pod + `]}`
	cuts := objects{style: style{cut: transformer(t).Convert}}
	o, _, err := cuts.Decode([]byte(pod), nil, nil)
	if u, is := o.(*unstructured.Unstructured); err != nil || !is || u.Object["spec"] != nil {
		t.Errorf("the watch brings %v, %v", o, err)
	}
	var list unstructured.UnstructuredList
	if cuts.fill(&list, []byte(page)) == nil || list.Items[0].Object["spec"] != nil {
		t.Errorf("the list has %v", list.Items)
	}
}

// TestAllElseIsAsInTheDynamicClient holds that single objects are whole, and errors keep their reasons and causes.
func TestAllElseIsAsInTheDynamicClient(t *testing.T) {
	c := clients(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, foo)
			return
		}
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"details":{"causes":[{"field":"metadata.uid"}]}}`)
	})
	for of, client := range c {
		u, err := client.Resource(foos).Namespace("default").Get(t.Context(), "a", metav1.GetOptions{})
		var want map[string]any
		if err := utiljson.Unmarshal([]byte(foo), &want); err != nil {
			t.Fatal(err)
		}
		if of == "slim" {
			unstructured.RemoveNestedField(want, "metadata", "managedFields")
		}
		if err != nil || !cmp.Equal(want, u.Object) {
			t.Errorf("%s: getting gives %v, %v", of, u, err)
		}
		_, err = client.Resource(foos).Namespace("default").Create(t.Context(), u, metav1.CreateOptions{})
		if status, is := err.(apierrors.APIStatus); !is || !apierrors.IsInvalid(err) || len(status.Status().Details.Causes) != 1 {
			t.Errorf("%s: creating gives %v", of, err)
		}
	}
}

// FuzzFrames holds that frames are found however the bytes come in, and that what follows from them is what client-go makes of the stream.
func FuzzFrames(f *testing.F) {
	for _, body := range streams() {
		if len(body) < 4<<10 {
			f.Add([]byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		stock := decodes(t, body, nil)
		for name, in := range map[string]func(io.Reader) io.Reader{"byte by byte": iotest.OneByteReader, "at once": iotest.DataErrReader} {
			if diff := cmp.Diff(stock, decodes(t, body, in)); diff != "" {
				t.Errorf("%s (-client-go +ours):\n%s", name, diff)
			}
		}
	})
}

// decodes is what a stream brings up to its first error, with our decoders if its bytes come in some way.
func decodes(t *testing.T, body []byte, in func(io.Reader) io.Reader) (out []any) {
	t.Helper()
	media := dynamic.ConfigFor(&rest.Config{}).NegotiatedSerializer
	info := media.SupportedMediaTypes()[0]
	var r io.Reader = strings.NewReader(string(body))
	if in != nil {
		info, r = serializer{media, style{cut: transformer(t).Convert}}.SupportedMediaTypes()[0], in(r)
	}
	frames := info.StreamSerializer.NewFrameReader(io.NopCloser(r))
	buf := make([]byte, 64<<10)
	for {
		n, err := frames.Read(buf)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			return append(out, "failed")
		}
		event := &metav1.WatchEvent{}
		if _, _, err := info.StreamSerializer.Decode(buf[:n], nil, event); err != nil {
			return append(out, "failed")
		}
		object, err := runtime.Decode(info.Serializer, event.Object.Raw)
		if err != nil {
			return append(out, "failed")
		}
		out = append(out, []any{event.Type, held(t, object)})
	}
}
