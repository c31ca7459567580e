// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/handwerk-dev/handwerk/sandbox/server"
)

func TestAsksSaysWhatARequestIsAbout(t *testing.T) {
	tests := map[string]string{
		"GET /api/v1/pods":                                                   "list pods / ",
		"GET /api/v1/pods?watch=1":                                           "watch pods / ",
		"POST /api/v1/namespaces/a/pods":                                     "create pods a/ ",
		"PATCH /apis/apps/v1/namespaces/a/deployments/web/status":            "patch deployments.apps a/web status",
		"DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/x.y": "delete customresourcedefinitions.apiextensions.k8s.io /x.y ",
		"GET /version":      "",
		"GET /apis/apps/v1": "",
	}
	for request, want := range tests {
		t.Run(request, func(t *testing.T) {
			var method, target string
			if _, err := fmt.Sscan(request, &method, &target); err != nil {
				t.Fatal(err)
			}
			got := ""
			if r, found := server.Asks(httptest.NewRequestWithContext(t.Context(), method, target, nil)); found {
				got = fmt.Sprintf("%s %s %s/%s %s", r.Verb, r.Resource.GroupResource(), r.Namespace, r.Name, r.Subresource)
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
