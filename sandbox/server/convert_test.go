// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
)

// newShops returns a server with a resource of two versions, v1 with spec.size and v2 with spec.sizes, that a webhook converts.
// Without a webhook nothing answers at its address.
func newShops(t *testing.T, convert http.HandlerFunc) wire {
	t.Helper()
	hook := httptest.NewTLSServer(convert)
	t.Cleanup(hook.Close)
	if convert == nil {
		hook.Close()
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw})
	schema := `{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{%s}}}}}`
	crd := fmt.Sprintf(`{"metadata":{"name":"shops.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"kind":"Shop","plural":"shops"},
		"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":%q,"caBundle":%q}}},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":%s},{"name":"v2","served":true,"storage":false,"schema":%s}]}}`,
		hook.URL+"/convert", base64.StdEncoding.EncodeToString(certificate),
		fmt.Sprintf(schema, `"size":{"type":"integer"}`), fmt.Sprintf(schema, `"sizes":{"type":"array","items":{"type":"integer"}}`))
	w := newWire(t, complete.Settings())
	if out := w.send(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd); out.code != http.StatusCreated {
		t.Fatal(out.text)
	}
	return w
}

// convertShops is the webhook.
func convertShops(w http.ResponseWriter, r *http.Request) {
	var review struct {
		Request struct {
			UID     string           `json:"uid"`
			Version string           `json:"desiredAPIVersion"`
			Objects []map[string]any `json:"objects"`
		} `json:"request"`
	}
	data, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(data, &review)
	for _, o := range review.Request.Objects {
		o["apiVersion"] = review.Request.Version
		spec, _ := o["spec"].(map[string]any)
		if len(spec) == 0 {
			continue // an apply converts objects with a part of their fields
		}
		if sizes, is := spec["sizes"].([]any); is {
			o["spec"] = map[string]any{"size": sizes[0]}
		} else {
			o["spec"] = map[string]any{"sizes": []any{spec["size"]}}
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
		"response": map[string]any{"uid": review.Request.UID, "convertedObjects": review.Request.Objects, "result": map[string]any{"status": "Success"}},
	})
}

const shopsV1, shopsV2 = "/apis/example.com/v1/namespaces/default/shops", "/apis/example.com/v2/namespaces/default/shops"

func TestAWebhookConverts(t *testing.T) {
	w := newShops(t, convertShops)
	merge, apply := []string{"Content-Type", "application/merge-patch+json"}, []string{"Content-Type", "application/apply-patch+yaml"}
	for _, step := range []struct {
		name, method, path, body string
		headers                  []string
		want                     string
	}{
		{"a new object", http.MethodPost, shopsV2, `{"apiVersion":"example.com/v2","kind":"Shop","metadata":{"name":"a"},"spec":{"sizes":[3]}}`, nil, `"spec":{"sizes":[3]}`},
		{"an object in the version in which it is stored", http.MethodGet, shopsV1 + "/a", "", nil, `"spec":{"size":3}`},
		{"a patch of another version", http.MethodPatch, shopsV2 + "/a", `{"spec":{"sizes":[5]}}`, merge, `"spec":{"sizes":[5]}`},
		{"a patch of the version in which it is stored", http.MethodPatch, shopsV1 + "/a", `{"spec":{"size":7}}`, merge, `"spec":{"size":7}`},
		{"an apply of another version", http.MethodPatch, shopsV2 + "/a?fieldManager=x&force=true", `{"apiVersion":"example.com/v2","kind":"Shop","spec":{"sizes":[9]}}`, apply, `"spec":{"sizes":[9]}`},
		{"an apply of the version in which it is stored", http.MethodPatch, shopsV1 + "/a?fieldManager=x&force=true", `{"apiVersion":"example.com/v1","kind":"Shop","spec":{"size":7}}`, apply, `"spec":{"size":7}`},
		{"a list", http.MethodGet, shopsV2, "", nil, `"spec":{"sizes":[7]}`},
		{"a watch", http.MethodGet, shopsV2 + "?watch=1&timeoutSeconds=1", "", nil, `"spec":{"sizes":[7]}`},
	} {
		if out := w.send(step.method, step.path, step.body, step.headers...); !strings.Contains(out.text, step.want) {
			t.Errorf("%s: %d %s", step.name, out.code, out.text)
		}
	}
}

func TestAWebhookThatDoesNotConvertIsAnError(t *testing.T) {
	for name, row := range map[string]struct {
		convert http.HandlerFunc
		want    string
	}{
		"nothing listens": {nil, `conversion webhook for example.com/v2, Kind=Shop failed: Post "https://127.0.0.1:`},
		"it fails": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTeapot) },
			"conversion webhook for example.com/v2, Kind=Shop failed: the server responded with the status code 418: no"},
		"it refuses": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"response":{"result":{"status":"Failure","message":"too large"}}}`)
		}, "conversion webhook for example.com/v2, Kind=Shop failed: too large"},
		"it returns nothing": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"response":{"result":{"status":"Success"}}}`)
		}, "conversion webhook for example.com/v2, Kind=Shop returned 0 objects, expected 1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newShops(t, row.convert)
			out := w.send(http.MethodPost, shopsV2, `{"apiVersion":"example.com/v2","kind":"Shop","metadata":{"name":"a"},"spec":{"sizes":[3]}}`)
			if out.code != http.StatusInternalServerError || !strings.HasPrefix(out.message(), row.want) {
				t.Errorf("%d %s", out.code, out.text)
			}
			if out := w.send(http.MethodGet, shopsV1+"/a", ""); out.code != http.StatusNotFound {
				t.Errorf("the object was stored: %s", out.text)
			}
		})
	}
}
