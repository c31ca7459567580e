// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

func TestOnlyWhoHasTheVerbApprovesAChange(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	policy, err := os.ReadFile("../../samples/approval/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	plane.Apply(t, "", string(policy))
	plane.Objects("changes.v1alpha1.samples.handwerk.dev", ns).Create(t, sample("Change", "mine", map[string]any{
		"settings": map[string]any{"colour": "green"},
	}))
	writes := cluster.Rule("samples.handwerk.dev", "changes", "get", "patch")
	author, approver := plane.User("author"), plane.User("approver")
	author.AllowIn(t, ns, writes)
	approver.AllowIn(t, ns, writes, cluster.Rule("samples.handwerk.dev", "changes", "approve"))
	send := func(u *cluster.User, patch string, dryRun ...string) error {
		client, err := dynamic.NewForConfig(u.Config())
		if err != nil {
			t.Fatal(err)
		}
		gvr := schema.GroupVersionResource{Group: "samples.handwerk.dev", Version: "v1alpha1", Resource: "changes"}
		_, err = client.Resource(gvr).Namespace(ns).Patch(t.Context(), "mine", types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: dryRun})
		return err
	}
	wish := func(state string) string {
		return `{"metadata":{"annotations":{"approval.handwerk.dev/goto":` + state + `}}}`
	}
	eventually(t, "a refusal of the author's approval", func() (bool, string) { // a policy takes effect after a while
		err := send(author, wish(`"Approved"`), metav1.DryRunAll)
		return apierrors.IsForbidden(err), fmt.Sprint(err)
	})
	if err := send(approver, wish(`"Approved"`)); err != nil {
		t.Errorf("an approver may not approve: %v", err)
	}
	for _, patch := range []string{`{"spec":{"settings":{"colour":"blue"}}}`, wish("null")} {
		if err := send(author, patch); err != nil {
			t.Errorf("the author may not send %s: %v", patch, err)
		}
	}
	if err := send(author, wish(`"Rejected"`)); !apierrors.IsForbidden(err) {
		t.Errorf("the author rejects a Change: %v, want a refusal", err)
	}
}
