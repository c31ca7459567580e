// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/builtin"
)

// TestEveryGroupIsKnownWithoutTheArchive holds that no kind of Kubernetes is taken for one of a CRD.
func TestEveryGroupIsKnownWithoutTheArchive(t *testing.T) {
	k, err := builtin.Open()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range k.List().Kinds {
		if !dsl.BuiltIn(e.Group) {
			t.Errorf("%s counts as a kind of a CRD", e.GroupVersionKind)
		}
	}
	for _, group := range []string{"example.com", "samplecontroller.k8s.io", "gateway.networking.k8s.io", "metrics.k8s.io"} {
		if dsl.BuiltIn(group) {
			t.Errorf("%s counts as a group of Kubernetes itself", group)
		}
	}
}
