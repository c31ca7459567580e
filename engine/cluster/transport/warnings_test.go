// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"

	"github.com/handwerk-dev/handwerk/dsl"
)

// request is one to a path.
func request(ctx context.Context, t *testing.T, method, path, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, "https://server"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// answers is a server that answers everything with a warning.
func answers(text string) trip {
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Warning": {`299 - "` + text + `"`}}, Body: http.NoBody}, nil
	}
}

// TestWarningsThatMayQuoteASecretAreNotLogged holds that other warnings of the API server are.
func TestWarningsThatMayQuoteASecretAreNotLogged(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	ctx, w := klog.NewContext(context.Background(), log), &warnings{}
	for of, text := range map[context.Context]string{ctx: "the field is old", dsl.Discreetly(ctx): "hush is no good value"} {
		response, err := w.wrap(answers(text)).RoundTrip(request(of, t, http.MethodPatch, "/api/v1/namespaces/shop/services/web", ""))
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
	}
	if text := strings.Join(lines, "\n"); !strings.Contains(text, "the field is old") || strings.Contains(text, "hush") {
		t.Errorf("the log says %s", text)
	}
}

// TestWhatARequestIsAbout holds how the object of a request is named.
func TestWhatARequestIsAbout(t *testing.T) {
	tests := map[string]struct{ method, path, body, want string }{
		"an object in a namespace":     {http.MethodPatch, "/api/v1/namespaces/shop/services/web", "", "services.v1 shop/web"},
		"one of a group":               {http.MethodPatch, "/apis/apps/v1/namespaces/shop/deployments/web/status", "", "deployments.v1.apps shop/web"},
		"one without a namespace":      {http.MethodGet, "/apis/example.com/v1/walls/north", "", "walls.v1.example.com north"},
		"a namespace":                  {http.MethodPatch, "/api/v1/namespaces/shop", "", "namespaces.v1 shop"},
		"the status of a namespace":    {http.MethodPatch, "/api/v1/namespaces/shop/status", "", "namespaces.v1 shop"},
		"a list":                       {http.MethodGet, "/api/v1/namespaces/shop/services", "", "services.v1 shop"},
		"a list of all namespaces":     {http.MethodGet, "/api/v1/services", "", "services.v1"},
		"one that is created":          {http.MethodPost, "/api/v1/namespaces/shop/services", `{"metadata": {"name": "web"}}`, "services.v1 shop/web"},
		"one that the server names":    {http.MethodPost, "/api/v1/namespaces/shop/services", `{"metadata": {"generateName": "web-"}}`, "services.v1 shop/web-"},
		"one that is not sent as JSON": {http.MethodPost, "/api/v1/namespaces/shop/services", "k8s", "services.v1 shop"},
		"no resource":                  {http.MethodGet, "/version", "", "/version"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, aboutOf(request(t.Context(), t, tt.method, tt.path, tt.body)).String()); diff != "" {
				t.Errorf("about (-want +got):\n%s", diff)
			}
		})
	}
}
