// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// sent is what a server got of a request.
type sent struct {
	Method, URI, Body string
	Header            http.Header
}

// requests are made with each client, and their results compared.
func requests() map[string]func(t *testing.T, c dynamic.Interface) (*unstructured.Unstructured, error) {
	yes := true
	object := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Foo", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"text": "<é\u2028>"}}}
	}
	in := func(c dynamic.Interface) dynamic.ResourceInterface { return c.Resource(foos).Namespace("default") }
	return map[string]func(t *testing.T, c dynamic.Interface) (*unstructured.Unstructured, error){
		"getting": func(t *testing.T, c dynamic.Interface) (*unstructured.Unstructured, error) {
			return in(c).Get(t.Context(), "a", metav1.GetOptions{})
		},
		"getting without a namespace": func(t *testing.T, c dynamic.Interface) (*unstructured.Unstructured, error) {
			return c.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}).Get(t.Context(), "system:a b", metav1.GetOptions{})
		},
		"getting at a version": func(t *testing.T, c dynamic.Interface) (*unstructured.Unstructured, error) {
			return in(c).Get(t.Context(), "a", metav1.GetOptions{ResourceVersion: "0"})
		},
		"getting what has no name": func(t *testing.T, c dynamic.Interface) (*unstructured.Unstructured, error) {
			return in(c).Get(t.Context(), "", metav1.GetOptions{})
		},
		"getting what no name can be": func(t *testing.T, c dynamic.Interface) (*unstructured.Unstructured, error) {
			return in(c).Get(t.Context(), "../a", metav1.GetOptions{})
		},
		"patching a status": func(t *testing.T, c dynamic.Interface) (*unstructured.Unstructured, error) {
			return in(c).Patch(t.Context(), "a", types.MergePatchType, []byte(`{"status":{"a":1}}`), metav1.PatchOptions{FieldManager: "foo/observed/a b&c"}, "status")
		},
		"patching without a manager": func(t *testing.T, c dynamic.Interface) (*unstructured.Unstructured, error) {
			return in(c).Patch(t.Context(), "a", types.JSONPatchType, []byte(`[]`), metav1.PatchOptions{Force: &yes})
		},
		"patching without effect": func(t *testing.T, c dynamic.Interface) (*unstructured.Unstructured, error) {
			return in(c).Patch(t.Context(), "a", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{DryRun: []string{"All"}, FieldValidation: "Strict"})
		},
		"applying": func(t *testing.T, c dynamic.Interface) (*unstructured.Unstructured, error) {
			return in(c).Apply(t.Context(), "a", object(), metav1.ApplyOptions{FieldManager: "foo", Force: true})
		},
		"applying a status without force": func(t *testing.T, c dynamic.Interface) (*unstructured.Unstructured, error) {
			return in(c).ApplyStatus(t.Context(), "a", object(), metav1.ApplyOptions{FieldManager: "foo"})
		},
		"applying managedFields": func(t *testing.T, c dynamic.Interface) (*unstructured.Unstructured, error) {
			o := object()
			o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "a"}})
			return in(c).Apply(t.Context(), "a", o, metav1.ApplyOptions{FieldManager: "foo"})
		},
	}
}

// responses are what a server answers to its nth request.
func responses() map[string]func(n int, w http.ResponseWriter, r *http.Request) {
	status := func(code int, text string) func(int, http.ResponseWriter, *http.Request) {
		return func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, text)
		}
	}
	failure := func(code int, reason string) func(int, http.ResponseWriter, *http.Request) {
		return status(code, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":%q,"code":%d,"details":{"name":"a","causes":[{"field":"metadata.uid"}]}}`, reason, code))
	}
	object := status(http.StatusOK, foo)
	return map[string]func(int, http.ResponseWriter, *http.Request){
		"an object":      object,
		"a new object":   status(http.StatusCreated, foo+"\n"),
		"a large object": status(http.StatusOK, strings.Replace(foo, `"x"`, `"`+strings.Repeat("x", 300<<10)+`"`, 1)),
		"an object with a warning": func(n int, w http.ResponseWriter, r *http.Request) {
			w.Header()["Warning"] = []string{`299 - "foos are deprecated"`, `299 - "\"spec.f\" is unknown"`}
			object(n, w, r)
		},
		"a refusal with a warning": func(n int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Warning", `299 - "foos are deprecated"`)
			failure(http.StatusConflict, "Conflict")(n, w, r)
		},
		"a failure with the code of success": status(http.StatusOK, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Conflict","code":409}`),
		"two objects":                        status(http.StatusOK, foo+foo),
		"a compression that is none": func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, foo) // it is not compressed
		},
		"a new token is needed": failure(http.StatusUnauthorized, "Unauthorized"),
		"the server is not ready, then an object": func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 0 {
				w.Header().Set("Retry-After", "0")
				http.Error(w, "", http.StatusServiceUnavailable)
				return
			}
			object(n, w, r)
		},
		"an irregular object":      status(http.StatusOK, strings.Replace(foo, `"spec"`, `"sp\u0065c"`, 1)),
		"a success":                status(http.StatusOK, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}`),
		"accepted":                 status(http.StatusAccepted, foo),
		"nothing":                  status(http.StatusOK, ``),
		"half an object":           status(http.StatusOK, foo[:100]),
		"an object without a kind": status(http.StatusOK, `{"metadata":{"name":"a"}}`),
		"a conflict":               failure(http.StatusConflict, "Conflict"),
		"an invalid object":        failure(http.StatusUnprocessableEntity, "Invalid"),
		"no such object":           failure(http.StatusNotFound, "NotFound"),
		"no such path":             func(_ int, w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) },
		"an error of a proxy": func(_ int, w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "<html>bad gateway</html>", http.StatusBadGateway)
		},
		"a page of a proxy": func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>log in</html>")
		},
		"an object with a charset": func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			_, _ = io.WriteString(w, foo)
		},
		"no type of content": func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			_, _ = io.WriteString(w, foo)
		},
		"too many requests, then an object": func(n int, w http.ResponseWriter, r *http.Request) {
			if n < 2 {
				w.Header().Set("Retry-After", "0")
				failure(http.StatusTooManyRequests, "TooManyRequests")(n, w, r)
				return
			}
			object(n, w, r)
		},
		"a redirect, then an object": func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 0 {
				http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
				return
			}
			object(n, w, r)
		},
		"a connection that breaks, then an object": func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 0 {
				panic(http.ErrAbortHandler)
			}
			object(n, w, r)
		},
		"a body that breaks off": func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100000")
			_, _ = io.WriteString(w, foo)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
	}
}

// TestRequestsAreThoseOfTheDynamicClient holds that a server gets the same requests from our clients as from the
// dynamic client, and that the same comes of its response, whatever that is.
func TestRequestsAreThoseOfTheDynamicClient(t *testing.T) {
	for what, respond := range responses() {
		for does, request := range requests() {
			t.Run(does+" gets "+what, func(t *testing.T) {
				t.Parallel() // client-go waits for a second before it tries again
				wantSent, want := talk(t, "stock", respond, request)
				for _, client := range []string{"whole", "slim"} {
					gotSent, got := talk(t, client, respond, request)
					if diff := cmp.Diff(wantSent, gotSent); diff != "" {
						t.Errorf("%s: requests (-dynamic client +ours):\n%s", client, diff)
					}
					if client == "slim" && want.Object != nil {
						unstructured.RemoveNestedField(want.Object, "metadata", "managedFields")
						unstructured.RemoveNestedField(got.Object, "metadata", "managedFields") // client-go has read it
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s: results (-dynamic client +ours):\n%s", client, diff)
					}
				}
			})
		}
	}
}

// result is what comes of a request.
type result struct {
	Object  map[string]any
	Err     string
	Reason  metav1.StatusReason
	Details *metav1.StatusDetails
	// Warnings are those that somebody heard.
	Warnings []string
}

// hearing notes warnings.
type hearing struct{ texts []string }

// HandleWarningHeader implements [rest.WarningHandler].
func (h *hearing) HandleWarningHeader(_ int, _, text string) { h.texts = append(h.texts, text) }

// talk makes a request with a client of a server of its own.
func talk(t *testing.T, client string, respond func(int, http.ResponseWriter, *http.Request), request func(*testing.T, dynamic.Interface) (*unstructured.Unstructured, error)) (got []sent, out result) {
	var mu sync.Mutex
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		n := len(got)
		if r.Header.Get("Referer") != "" {
			r.Header.Set("Referer", "the request before") // it has the port of this server
		}
		got = append(got, sent{r.Method, r.RequestURI, string(body), r.Header})
		mu.Unlock()
		respond(n, w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	defer server.Close()
	heard := &hearing{}
	config := &rest.Config{
		Host: server.URL + "/behind/a/proxy", QPS: -1, UserAgent: "foo/1", WarningHandler: heard,
		Transport: http.DefaultTransport.(*http.Transport).Clone(), // the end of another test's server closes connections of the default one
	}
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer h.CloseIdleConnections()
	dial := map[string]func(*rest.Config, *http.Client) (dynamic.Interface, error){
		"whole": New, "slim": NewSlim,
		"stock": func(config *rest.Config, h *http.Client) (dynamic.Interface, error) {
			return dynamic.NewForConfigAndClient(config, h)
		},
	}[client]
	c, err := dial(config, h)
	if err != nil {
		t.Fatal(err)
	}
	u, err := request(t, c)
	if u != nil {
		out.Object = u.Object
	}
	if err != nil {
		out.Err, out.Reason = strings.ReplaceAll(err.Error(), server.URL, "the server"), apierrors.ReasonForError(err)
		if status, is := err.(apierrors.APIStatus); is {
			out.Details = status.Status().Details
		}
	}
	server.Close() // waits for its handlers
	out.Warnings = heard.texts
	return got, out
}

// TestResultsOutliveTheirBuffers holds that the buffer of a response is not used again while something of its object
// is in it.
func TestResultsOutliveTheirBuffers(t *testing.T) {
	c := clients(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, strings.ReplaceAll(foo, `"a"`, `"`+r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]+`"`))
	})
	for of, client := range c {
		var wg sync.WaitGroup
		for worker := range 4 {
			wg.Go(func() {
				read := map[string]*unstructured.Unstructured{}
				for n := range 20 {
					name := fmt.Sprintf("a-%d-%d", worker, n)
					u, err := client.Resource(foos).Namespace("default").Get(t.Context(), name, metav1.GetOptions{})
					if err != nil {
						t.Error(of, err)
						return
					}
					read[name] = u
				}
				for name, u := range read {
					if u.GetName() != name || u.GetLabels()["x"] != "y" {
						t.Errorf("%s: %s became %v", of, name, u.Object)
					}
				}
			})
		}
		wg.Wait()
	}
}

// TestClientGoSendsWhatItDoesMoreFor holds that requests with a limit, or with a timeout for all of them, are client-go's.
func TestClientGoSendsWhatItDoesMoreFor(t *testing.T) {
	for name, tt := range map[string]struct {
		config rest.Config
		ours   bool
	}{
		"nothing more":          {rest.Config{Host: "https://example.com", QPS: -1}, true},
		"a limit on requests":   {rest.Config{Host: "https://example.com", QPS: 10}, false},
		"the default limit":     {rest.Config{Host: "https://example.com"}, false},
		"a timeout":             {rest.Config{Host: "https://example.com", QPS: -1, Timeout: 1}, false},
		"a password in the URL": {rest.Config{Host: "https://a:b@example.com", QPS: -1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			tt.config.UserAgent = "foo" // so the client has a transport of its own
			h, err := rest.HTTPClientFor(&tt.config)
			if err != nil {
				t.Fatal(err)
			}
			c, err := New(&tt.config, h)
			if err != nil {
				t.Fatal(err)
			}
			if _, ours := c.(direct); ours != tt.ours {
				t.Errorf("the client is %T", c)
			}
		})
	}
}

// BenchmarkPatch measures a patch of a status up to the transport, and its answer.
func BenchmarkPatch(b *testing.B) {
	text := strings.Replace(foo, `"list"`, `"text":"`+strings.Repeat("x", 1000)+`","list"`, 1)
	config := &rest.Config{Host: "https://example.com", QPS: -1, UserAgent: "foo/1", Transport: answering(text)}
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		b.Fatal(err)
	}
	slim, err := NewSlim(config, h)
	if err != nil {
		b.Fatal(err)
	}
	data := []byte(`{"status":{"a":1}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := slim.Resource(foos).Namespace("default").Patch(b.Context(), "a", types.MergePatchType, data, metav1.PatchOptions{FieldManager: "foo"}, "status"); err != nil {
			b.Fatal(err)
		}
	}
}

// answering answers each request with the same object.
type answering string

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(len(a)), Body: io.NopCloser(strings.NewReader(string(a))), Request: r}, nil
}
