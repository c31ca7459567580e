// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// notes are what a server counted and logged.
type notes struct {
	mu       sync.Mutex
	results  []string
	inFlight int
	lines    []string
}

func (n *notes) Reviewed(path, result string, _ time.Duration) {
	n.locked(func() { n.results = append(n.results, path+" "+result) })
}

func (n *notes) Reviewing(_ string, by int) { n.locked(func() { n.inFlight += by }) }

func (n *notes) locked(do func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	do()
}

func noCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }

// newServer returns a server with functions that do what their paths say.
func newServer(t testing.TB, adjust ...func(*Options)) (*Server, *notes) {
	t.Helper()
	n := &notes{}
	set := Options{
		Certificate: noCertificate, Metrics: n, Conversions: map[string]Convert{"/convert": byName},
		Reviews: map[string]Review{
			"/allow": func(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
				return &admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(`[]`), Warnings: []string{"careful"}}
			},
			"/deny": func(_ context.Context, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
				return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: "no " + r.Name}}
			},
			"/panic": func(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
				panic("secret text")
			},
			"/exit": func(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
				runtime.Goexit()
				return nil
			},
			"/none": func(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse { return nil },
			"/hang": func(ctx context.Context, _ *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
				<-ctx.Done()
				return &admissionv1.AdmissionResponse{Allowed: true}
			},
		},
		Log: funcr.New(func(_, line string) { n.locked(func() { n.lines = append(n.lines, line) }) }, funcr.Options{}),
	}
	for _, change := range adjust {
		change(&set)
	}
	s, err := New(set)
	if err != nil {
		t.Fatal(err)
	}
	return s, n
}

// byName converts as the object's name says.
func byName(_ context.Context, o *unstructured.Unstructured, to string) (*unstructured.Unstructured, error) {
	switch o.GetName() {
	case "panic":
		panic("secret text")
	case "fail":
		return nil, fmt.Errorf("it cannot be")
	case "none":
		return nil, nil
	case "same":
		return o, nil
	}
	o.SetAPIVersion(to)
	return o, nil
}

// send sends a body.
func send(ctx context.Context, s *Server, path, body string, adjust ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for _, change := range adjust {
		change(r)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// review is the body of a review of an object in a namespace.
func review(namespace, name string) string {
	return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u1","namespace":%q,"name":%q}}`, namespace, name)
}

func TestReviewsAreAnswered(t *testing.T) {
	tests := map[string]struct {
		path     string
		allowed  bool
		message  string
		result   string
		log      string
		patched  bool
		warnings []string
	}{
		"an allowed request has its patch and warnings":                {path: "/allow", allowed: true, result: "/allow allowed", patched: true, warnings: []string{"careful"}},
		"a denied request has the message":                             {path: "/deny", message: "no web", result: "/deny denied"},
		"a panic denies with an id that the log has, and not its text": {path: "/panic", message: "with the id ", result: "/panic panicked", log: "panic: secret text"},
		"runtime.Goexit counts as a panic":                             {path: "/exit", message: "with the id ", result: "/exit panicked", log: "runtime.Goexit"},
		"no response denies":                                           {path: "/none", message: "gave no response", result: "/none failed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, n := newServer(t)
			w := send(t.Context(), s, tt.path+"?timeout=5s", review("shop", "web"))
			var got admissionv1.AdmissionReview
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK || got.Response == nil {
				t.Fatalf("%d %s: %v", w.Code, w.Body, err)
			}
			r := got.Response
			message := ""
			if r.Result != nil {
				message = r.Result.Message
			}
			if r.UID != "u1" || r.Allowed != tt.allowed || !strings.Contains(message, tt.message) || strings.Contains(message, "secret") || got.Kind != "AdmissionReview" {
				t.Errorf("%+v, message %q", r, message)
			}
			if (r.PatchType != nil && *r.PatchType == admissionv1.PatchTypeJSONPatch) != tt.patched || !cmp.Equal(r.Warnings, tt.warnings) {
				t.Errorf("patch type %v, warnings %v", r.PatchType, r.Warnings)
			}
			if !cmp.Equal(n.results, []string{tt.result}) || n.inFlight != 0 {
				t.Errorf("counted %v, %d in flight", n.results, n.inFlight)
			}
			lines := strings.Join(n.lines, "\n")
			if _, id, found := strings.Cut(message, "with the id "); found && !strings.Contains(lines, id) || !strings.Contains(lines, tt.log) || tt.log == "" && lines != "" {
				t.Errorf("message %q, logged %s", message, lines)
			}
		})
	}
}

func TestRequestsThatAreNoReviewsAreRefused(t *testing.T) {
	get := func(r *http.Request) { r.Method = http.MethodGet }
	kind := func(kind string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Content-Type", kind) }
	}
	tests := map[string]struct {
		path, body string
		adjust     func(*http.Request)
		code       int
		text       string
	}{
		"an unknown path":           {"/other", review("", "a"), nil, 404, `no webhook has the path \"/other\"`},
		"another method":            {"/allow", "", get, 405, "POST"},
		"another content type":      {"/allow", review("", "a"), kind("application/yaml"), 415, "application/json"},
		"no content type":           {"/allow", review("", "a"), kind(""), 415, "application/json"},
		"no JSON":                   {"/allow", "kind: AdmissionReview", nil, 400, "reading the review"},
		"an empty body":             {"/allow", "", nil, 400, "reading the review"},
		"more than one value":       {"/allow", review("", "a") + "{}", nil, 400, "reading the review"},
		"an earlier version":        {"/allow", strings.Replace(review("", "a"), "/v1", "/v1beta1", 1), nil, 400, "admission.k8s.io/v1 AdmissionReview"},
		"another kind":              {"/convert", review("", "a"), nil, 400, "apiextensions.k8s.io/v1 ConversionReview"},
		"no request":                {"/allow", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, nil, 400, "no request"},
		"no uid":                    {"/allow", strings.Replace(review("", "a"), "u1", "", 1), nil, 400, "uid"},
		"a body that is too large":  {"/allow", review("", strings.Repeat("a", 2000)), nil, 413, "1000 bytes"},
		"one that hides its length": {"/allow", review("", strings.Repeat("a", 2000)), func(r *http.Request) { r.ContentLength = -1 }, 413, "1000 bytes"},
		"a timeout that is none":    {"/allow?timeout=soon", review("", "a"), nil, 400, "timeout=10s"},
		"a timeout below zero":      {"/allow?timeout=-1s", review("", "a"), nil, 400, "timeout=10s"},
		"an object that is none": {"/convert", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u","desiredAPIVersion":"a/v1","objects":[1]}}`,
			nil, 400, "object 0"},
		"a conversion to no version": {"/convert", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u"}}`, nil, 400, "desiredAPIVersion"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, _ := newServer(t, func(o *Options) { o.ReviewBytes = 1000 })
			if tt.adjust == nil {
				tt.adjust = func(*http.Request) {}
			}
			w := send(t.Context(), s, tt.path, tt.body, tt.adjust)
			var status metav1.Status
			if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil || w.Code != tt.code || int(status.Code) != tt.code || status.Kind != "Status" || status.Reason == "" {
				t.Errorf("%d %s: %v", w.Code, w.Body, err)
			}
			if !strings.Contains(w.Body.String(), tt.text) {
				t.Errorf("%s does not say %q", w.Body, tt.text)
			}
		})
	}
}

// TestAReviewThatTakesTooLongIsAnsweredInTime holds the time in which the answer comes, and that a function which does not heed its
// context keeps its place until it returns.
func TestAReviewThatTakesTooLongIsAnsweredInTime(t *testing.T) {
	tests := map[string]struct {
		query string
		want  time.Duration
	}{
		"a tenth before the timeout":       {"?timeout=10s", 9 * time.Second},
		"a tenth of a second before it":    {"?timeout=500ms", 400 * time.Millisecond},
		"half of a time that has no room":  {"?timeout=100ms", 50 * time.Millisecond},
		"the usual timeout without one":    {"", 9 * time.Second},
		"no longer than any webhook waits": {"?timeout=1h", 27 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, n := newServer(t)
				began := time.Now()
				w := send(t.Context(), s, "/hang"+tt.query, review("shop", "web"))
				if took := time.Since(began); took != tt.want {
					t.Errorf("answered after %v, want %v", took, tt.want)
				}
				if w.Code != http.StatusGatewayTimeout || !strings.Contains(w.Body.String(), "within "+tt.want.String()) || !cmp.Equal(n.results, []string{"/hang timeout"}) {
					t.Errorf("%d %s, counted %v", w.Code, w.Body, n.results)
				}
			})
		})
	}
}

// TestAFunctionThatGivesUpDeniesNothing holds that the failure policy decides if a function gives no response because its time has ended.
func TestAFunctionThatGivesUpDeniesNothing(t *testing.T) {
	s, _ := newServer(t)
	to := s.routes["/none"]
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&refusal{code: http.StatusGatewayTimeout, text: "late", result: TimedOut})
	for range 100 { // either may come first
		j, err := to.decode([]byte(review("shop", "web")))
		if err != nil {
			t.Fatal(err)
		}
		of := in("shop", 0)
		if err := to.lane.gate.enter(t.Context(), of); err != nil {
			t.Fatal(err)
		}
		if a, err := s.run(ctx, to, j, of); err == nil {
			t.Fatalf("the answer is %s", a.result)
		}
	}
}

func TestAFunctionThatGoesOnKeepsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		s, _ := newServer(t, func(o *Options) {
			o.AtOnce = 1
			o.Reviews["/deaf"] = func(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse { <-end; return nil }
		})
		if w := send(t.Context(), s, "/deaf?timeout=1s", review("shop", "web")); w.Code != http.StatusGatewayTimeout {
			t.Errorf("the first one: %d %s", w.Code, w.Body)
		}
		w := send(t.Context(), s, "/allow?timeout=1s", review("shop", "web"))
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "namespace shop") {
			t.Errorf("while its place is taken: %d %s", w.Code, w.Body)
		}
		close(end)
		synctest.Wait()
		if w := send(t.Context(), s, "/allow?timeout=1s", review("shop", "web")); w.Code != http.StatusOK {
			t.Errorf("afterwards: %d %s", w.Code, w.Body)
		}
	})
}

func TestConversionsAreAnswered(t *testing.T) {
	body := func(names ...string) string {
		var objects []string
		for _, name := range names {
			objects = append(objects, fmt.Sprintf(`{"apiVersion":"a/v1","kind":"Foo","metadata":{"name":%q,"namespace":"shop"},"n":12345678901234567}`, name))
		}
		return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u1","desiredAPIVersion":"a/v2","objects":[%s]}}`, strings.Join(objects, ","))
	}
	tests := map[string]struct {
		names           []string
		message, result string
	}{
		"all objects are converted in their order": {[]string{"b", "a"}, "", "/convert converted"},
		"no objects":                  {nil, "", "/convert converted"},
		"an error names the object":   {[]string{"a", "fail"}, "converting Foo shop/fail from a/v1 to a/v2: it cannot be", "/convert failed"},
		"no object is an error":       {[]string{"none"}, "returned no object", "/convert failed"},
		"another version is an error": {[]string{"same"}, "returned a/v1 Foo", "/convert failed"},
		"a panic has an id":           {[]string{"panic"}, "with the id ", "/convert panicked"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, n := newServer(t)
			w := send(t.Context(), s, "/convert?timeout=30s", body(tt.names...))
			var got conversionReview
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK || got.Response == nil || got.Response.UID != "u1" {
				t.Fatalf("%d %s: %v", w.Code, w.Body, err)
			}
			if !strings.Contains(got.Response.Result.Message, tt.message) || (tt.message == "") != (got.Response.Result.Status == "Success") {
				t.Errorf("%+v", got.Response.Result)
			}
			if !cmp.Equal(n.results, []string{tt.result}) {
				t.Errorf("counted %v", n.results)
			}
			if tt.message != "" {
				return
			}
			var names []string
			for _, o := range got.Response.ConvertedObjects {
				names = append(names, o.GetName())
			}
			if !cmp.Equal(names, tt.names) || len(names) > 0 && !strings.Contains(w.Body.String(), `"apiVersion":"a/v2","kind":"Foo","metadata":{"name":"b","namespace":"shop"},"n":12345678901234567`) {
				t.Errorf("%s", w.Body)
			}
		})
	}
}
