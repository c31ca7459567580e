// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzReview holds that each body has an answer: a review with the request's UID, or an HTTP error with a Status.
func FuzzReview(f *testing.F) {
	full := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"group":"apps","version":"v1","kind":"Deployment"},` +
		`"resource":{"group":"apps","version":"v1","resource":"deployments"},"name":"web","namespace":"shop","operation":"UPDATE","userInfo":{"username":"ann","groups":["a"],"extra":{"x":["y"]}},` +
		`"object":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"}},"oldObject":null,"dryRun":true,"options":{"kind":"UpdateOptions"}}}`
	conversion := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u","desiredAPIVersion":"a/v2","objects":[{"apiVersion":"a/v1","kind":"Foo","metadata":{"name":"x"}},{"apiVersion":"a/v2","kind":"Foo"}]}}`
	for _, body := range []string{
		full, conversion, "", "{}", "null", "[]", `"x"`, "{", `{"apiVersion":1}`, review("a", "b"), review("", ""), strings.Repeat("[", 20000),
		strings.Replace(full, `{"apiVersion":"apps/v1"`, `{"apiVersion":1e999`, 1), strings.Replace(full, `"dryRun":true`, `"dryRun":"true"`, 1),
		strings.Replace(conversion, `[{`, `[null,1,"x",[],{`, 1), strings.Replace(conversion, `{"name":"x"}`, `[]`, 1),
		strings.Replace(conversion, `"kind":"Foo"`, `"kind":"FooList","items":[{}]`, 1), "\xff\xfe" + full, full + full,
		strings.Replace(conversion, `"name":"x"`, `"name":"panic"`, 1),
	} {
		for path := range 4 {
			f.Add(byte(path), []byte(body))
		}
	}
	s, _ := newServer(f, func(o *Options) {
		o.Metrics = nil
		o.Reviews["/reads"] = func(_ context.Context, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			return &admissionv1.AdmissionResponse{Allowed: r.DryRun != nil && *r.DryRun, Result: &metav1.Status{Message: r.Name}, Patch: r.Object.Raw}
		}
	})
	paths := []string{"/reads", "/convert", "/panic", "/allow"}
	f.Fuzz(func(t *testing.T, path byte, body []byte) {
		to := paths[int(path)%len(paths)]
		w := send(t.Context(), s, to, string(body))
		var got struct {
			metav1.TypeMeta
			Response *struct {
				UID     string `json:"uid"`
				Allowed *bool  `json:"allowed"`
				Result  any    `json:"result"`
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatalf("%d %s: %v", w.Code, w.Body, err)
		}
		if w.Code != http.StatusOK {
			if got.Kind != "Status" || w.Code < 400 || w.Code > 499 {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			return
		}
		var sent struct{ Request struct{ UID string } }
		_ = json.Unmarshal(body, &sent) // without it the UIDs differ
		if got.Response == nil || got.Response.UID != sent.Request.UID && json.Valid(body) && !strings.Contains(strings.ToLower(string(body)), "\\u") && onlyOne(body) {
			t.Fatalf("%s for %s", w.Body, body)
		}
		if to == "/convert" == (got.Response.Allowed != nil) {
			t.Fatalf("%s answers %s", to, w.Body)
		}
	})
}

// onlyOne reports whether a body has one uid in the case in which the server reads it; encoding/json reads others, too.
func onlyOne(body []byte) bool {
	text := strings.ToLower(string(body))
	return strings.Count(text, `uid"`) == 1 && strings.Count(text, `request"`) == 1
}
