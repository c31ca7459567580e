// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestOthers holds whose fields are taken away under each policy of drift.
func TestOthers(t *testing.T) {
	managers := strings.Fields(`kubectl-edit kubectl-rollout handwerk-adopted curl op op/patch/h/uid op/observed/uid operator
		kube-controller-manager kube-scheduler kubelet before-first-apply`)
	for name, tt := range map[string]struct {
		policy  dsl.DriftPolicy
		allowed []string
		want    string
	}{
		"by default those of people who edit":                     {"", nil, "kubectl-edit"},
		"so where it is said":                                     {dsl.DriftFields, nil, "kubectl-edit"},
		"strictly, of all but Kubernetes and the operator itself": {dsl.DriftStrict, nil, "kubectl-edit kubectl-rollout handwerk-adopted curl operator"},
		"and but for who is allowed":                              {dsl.DriftStrict, []string{"curl", "kubectl-rollout"}, "kubectl-edit handwerk-adopted operator"},
	} {
		t.Run(name, func(t *testing.T) {
			o := OthersOf(tt.policy, "op", tt.allowed)
			got := slices.DeleteFunc(slices.Clone(managers), func(manager string) bool { return !o.Count(manager) })
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("those who count (-want +got):\n%s", diff)
			}
			if o.Set(metav1.ManagedFieldsEntry{Manager: "kubectl-edit", Subresource: "scale"}) {
				t.Error("what is set by a subresource counts")
			}
		})
	}
}
