// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/sandbox/server"
)

// TestWritesStandInTheOrderInWhichTheyTookEffect holds that a write comes before those that follow from it, also if its response was
// there last.
func TestWritesStandInTheOrderInWhichTheyTookEffect(t *testing.T) {
	p := &Process{cluster: &Cluster{}}
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	for _, r := range []server.Request{
		{Verb: "update", Resource: deployments, Namespace: "default", Name: "last", Number: 3},
		{Verb: "delete", Resource: deployments, Namespace: "default", Name: "first", Number: 1},
		{Verb: "patch", Resource: deployments, Namespace: "default", Name: "second", Number: 2},
	} {
		if err := p.after(t.Context(), r, http.StatusOK); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, w := range p.Writes() {
		got = append(got, w.String())
	}
	want := []string{"delete deployments default/first", "patch deployments default/second", "update deployments default/last"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}
