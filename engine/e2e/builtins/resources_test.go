// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtins

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

// TestResourcesAreDiscoveredAsOnARealServer compares what kubectl api-resources shows of the resources that the server
// in memory has: names, scope, kind and verbs.
func TestResourcesAreDiscoveredAsOnARealServer(t *testing.T) {
	got, want := resources(t, inMemory(t).discovery), resources(t, realServer(t).discovery)
	if len(got) < 50 {
		t.Errorf("there are %d resources in memory", len(got))
	}
	for name, resource := range got {
		if diff := cmp.Diff(want[name], resource, cmpopts.IgnoreFields(metav1.APIResource{}, "StorageVersionHash", "Group", "Version")); diff != "" {
			t.Errorf("%s (-real +in memory):\n%s", name, diff)
		}
	}
}

// resources returns the resources of a server by group, version and name.
func resources(t *testing.T, d discovery.DiscoveryInterface) map[string]metav1.APIResource {
	t.Helper()
	_, lists, err := d.ServerGroupsAndResources()
	if err != nil {
		t.Fatalf("discovering the resources: %v", err)
	}
	out := map[string]metav1.APIResource{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			slices.Sort(r.Verbs)
			out[list.GroupVersion+" "+r.Name] = r
		}
	}
	return out
}
