// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
)

const webhookConfigurations = "/apis/admissionregistration.k8s.io/v1/"

// hook registers an admission webhook for ConfigMaps whose names do not begin with kube. More are its other fields.
func (w wire) hook(kind, more string, answer func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) {
	w.t.Helper()
	w.hookFor("", "configmaps", kind, more, answer)
}

// hookFor is hook for version v1 of a resource.
func (w wire) hookFor(group, resource, kind, more string, answer func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) {
	w.t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(out, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = answer(review.Request)
		review.Response.UID, review.Request = review.Request.UID, nil
		_ = json.NewEncoder(out).Encode(review)
	}))
	w.t.Cleanup(server.Close)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	body := fmt.Sprintf(`{"metadata":{"name":"h"},"webhooks":[{"name":"h.example.com","admissionReviewVersions":["v1"],"sideEffects":"None",
		"clientConfig":{"url":%q,"caBundle":%q},"rules":[{"apiGroups":[%q],"apiVersions":["v1"],"resources":[%q],"operations":["*"]}]%s}]}`,
		server.URL+"/h", base64.StdEncoding.EncodeToString(certificate), group, resource, more)
	if out := w.send(http.MethodPost, webhookConfigurations+kind+"webhookconfigurations", body); out.code != http.StatusCreated || out.header.Get("Warning") != "" {
		w.t.Fatal(out.text, out.header)
	}
}

func TestAWebhookDenies(t *testing.T) {
	w := newWire(t, complete.Settings())
	w.put("default", "old")
	var seen []string
	w.hook("validating", "", func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		seen = append(seen, fmt.Sprintf("%s %s/%s by %s", r.Operation, r.Namespace, r.Name, r.UserInfo.Username))
		w.send(http.MethodGet, inDefault, "") // it may ask the server
		return &admissionv1.AdmissionResponse{Allowed: r.Name == "good", Warnings: []string{"mind"}, Result: &metav1.Status{Message: "no", Code: http.StatusForbidden}}
	})
	const want = `admission webhook "h.example.com" denied the request: no`
	merge := []string{"Content-Type", "application/merge-patch+json"}
	for _, step := range []struct {
		method, path, body string
		headers            []string
		code               int
	}{
		{http.MethodPost, inDefault, `{"metadata":{"name":"bad"}}`, nil, http.StatusForbidden},
		{http.MethodPost, inDefault, `{"metadata":{"name":"good"}}`, nil, http.StatusCreated},
		{http.MethodPatch, inDefault + "/old", `{"data":{"k":"v"}}`, merge, http.StatusForbidden},
		{http.MethodDelete, inDefault + "/old", "", nil, http.StatusForbidden},
		{http.MethodPost, "/api/v1/namespaces/default/secrets", `{"metadata":{"name":"bad"}}`, nil, http.StatusCreated},
	} {
		out := w.send(step.method, step.path, step.body, step.headers...)
		if out.code != step.code || step.code == http.StatusForbidden && out.message() != want {
			t.Errorf("%s %s: %d %s", step.method, step.path, out.code, out.text)
		}
		if !strings.Contains(step.path, "secrets") && out.header.Get("Warning") != `299 - "mind"` {
			t.Errorf("%s %s: the warning is %s", step.method, step.path, out.header.Get("Warning"))
		}
	}
	const all = "[CREATE default/bad by kubernetes-admin CREATE default/good by kubernetes-admin UPDATE default/old by kubernetes-admin DELETE default/old by kubernetes-admin]"
	if got := fmt.Sprint(seen); got != all {
		t.Errorf("the webhook has seen %s", got)
	}
}

func TestAWebhookChangesObjects(t *testing.T) {
	w := newWire(t, complete.Settings())
	w.hook("mutating", "", func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		kind := admissionv1.PatchTypeJSONPatch
		return &admissionv1.AdmissionResponse{Allowed: true, PatchType: &kind, Patch: []byte(`[{"op":"add","path":"/data","value":{"by":"hook"}}]`)}
	})
	if out := w.send(http.MethodPost, inDefault, `{"metadata":{"name":"a"}}`); fmt.Sprint(out.json["data"]) != "map[by:hook]" {
		t.Errorf("a new object: %s", out.text)
	}
	out := w.send(http.MethodPatch, inDefault+"/a", `{"data":{"k":"v"}}`, "Content-Type", "application/merge-patch+json")
	if fmt.Sprint(out.json["data"]) != "map[by:hook]" {
		t.Errorf("a changed object: %s", out.text)
	}
}

func TestAWebhookSeesTheVersionThatItsRulesHave(t *testing.T) {
	const shop = `{"apiVersion":"example.com/v2","kind":"Shop","metadata":{"name":"a"},"spec":{"sizes":[3]}}`
	for _, test := range []struct {
		name, more string
		seen       []string
		want       string
	}{
		{"equivalent requests", "", []string{"CREATE v1 of v2 map[size:3]"}, `"spec":{"sizes":[9]}`},
		{"a condition about the form that it sees", `,"matchConditions":[{"name":"a","expression":"object.spec.size == 3"}]`,
			[]string{"CREATE v1 of v2 map[size:3]"}, `"spec":{"sizes":[9]}`},
		{"a condition that is false", `,"matchConditions":[{"name":"a","expression":"object.spec.size == 4"}]`, nil, `"spec":{"sizes":[3]}`},
		{"exact requests", `,"matchPolicy":"Exact"`, nil, `"spec":{"sizes":[3]}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newShops(t, convertShops)
			var seen []string
			w.hookFor("example.com", "shops", "mutating", test.more, func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
				var object struct{ Spec map[string]any }
				if err := json.Unmarshal(r.Object.Raw, &object); err != nil {
					t.Error(err)
				}
				seen = append(seen, fmt.Sprint(r.Operation, " ", r.Kind.Version, " of ", r.RequestKind.Version, " ", object.Spec))
				kind := admissionv1.PatchTypeJSONPatch
				return &admissionv1.AdmissionResponse{Allowed: true, PatchType: &kind, Patch: []byte(`[{"op":"replace","path":"/spec/size","value":9}]`)}
			})
			if out := w.send(http.MethodPost, shopsV2, shop); out.code != http.StatusCreated || !strings.Contains(out.text, test.want) {
				t.Errorf("%d %s, want %s", out.code, out.text, test.want)
			}
			if diff := cmp.Diff(test.seen, seen); diff != "" {
				t.Errorf("the webhook has seen (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAWriteThatMeetsAnotherWhileAWebhookIsAskedIsDoneAgain(t *testing.T) {
	w := newWire(t, complete.Settings())
	w.put("default", "a")
	merge, calls := []string{"Content-Type", "application/merge-patch+json"}, 0
	w.hook("validating", "", func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		if calls++; calls == 1 {
			w.send(http.MethodPatch, inDefault+"/a", `{"data":{"other":"v"}}`, merge...)
		}
		return &admissionv1.AdmissionResponse{Allowed: true}
	})
	out := w.send(http.MethodPatch, inDefault+"/a", `{"data":{"own":"v"}}`, merge...)
	if got := fmt.Sprint(out.json["data"]); got != "map[other:v own:v]" || calls != 3 {
		t.Errorf("after %d calls: %s", calls, out.text)
	}
}

func TestAWebhookThatFailsIsIgnoredIfItSaysSo(t *testing.T) {
	for policy, want := range map[string]int{"Fail": http.StatusInternalServerError, "Ignore": http.StatusCreated} {
		w := newWire(t, complete.Settings())
		w.hook("validating", `,"failurePolicy":"`+policy+`"`, func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			r.UID = "another"
			return &admissionv1.AdmissionResponse{Allowed: true}
		})
		out := w.send(http.MethodPost, inDefault, `{"metadata":{"name":"a"}}`)
		if out.code != want || want > 300 && !strings.Contains(out.message(), `failed calling webhook "h.example.com": failed to call webhook: expected response.uid=`) {
			t.Errorf("%s: %d %s", policy, out.code, out.text)
		}
	}
}

func TestADryRunStaysOneWhileAWebhookIsAsked(t *testing.T) {
	w := newWire(t, complete.Settings())
	const secret = "/api/v1/namespaces/default/secrets"
	w.hook("validating", "", func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		w.send(http.MethodPost, secret, `{"metadata":{"name":"real"}}`)
		return &admissionv1.AdmissionResponse{Allowed: r.DryRun != nil && *r.DryRun}
	})
	if out := w.send(http.MethodPost, inDefault+"?dryRun=All", `{"metadata":{"name":"a"}}`); out.code != http.StatusCreated {
		t.Errorf("the dry run: %s", out.text)
	}
	for path, want := range map[string]int{inDefault + "/a": http.StatusNotFound, secret + "/real": http.StatusOK} {
		if out := w.send(http.MethodGet, path, ""); out.code != want {
			t.Errorf("%s: %d", path, out.code)
		}
	}
}

func TestAWebhookIsNotWaitedForOnceTheClientIsGone(t *testing.T) {
	w := newWire(t, complete.Settings())
	ctx, leave := context.WithCancel(t.Context())
	proceed := make(chan struct{})
	w.hook("validating", "", func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		leave()
		<-proceed
		return &admissionv1.AdmissionResponse{Allowed: true}
	})
	t.Cleanup(func() { close(proceed) }) // before the server of the webhook is closed, which waits for its requests
	created := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	if _, err := w.typed().CoreV1().ConfigMaps("default").Create(ctx, created, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("the error is %v", err)
	}
	if out := w.send(http.MethodGet, inDefault+"/a", ""); out.code != http.StatusNotFound {
		t.Errorf("the object is there: %d", out.code)
	}
}
