// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestRefusedVersion holds which errors say that an entry of managedFields has a version that the CRD has dropped.
func TestRefusedVersion(t *testing.T) {
	tests := map[string]struct {
		err  error
		want string
	}{
		"the server's words, within others": {errors.New("applying Foo a/b: request to convert CR to an invalid group/version: x.io/v1alpha1"), "x.io/v1alpha1"},
		"words after them":                  {errors.New("request to convert CR to an invalid group/version: x.io/v1: more"), "x.io/v1"},
		"words that are withheld": {
			dsl.Withhold(apierrors.NewInternalError(errors.New("request to convert CR to an invalid group/version: x.io/v1alpha1")), ""), "x.io/v1alpha1",
		},
		"another error": {errors.New("conflict"), ""},
		"no error":      {nil, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, refused := RejectedVersion(tt.err); got != tt.want || refused != (tt.want != "") {
				t.Errorf("%q, %t, want %q", got, refused, tt.want)
			}
		})
	}
}

// TestRenewed holds that the operator's entries of a dropped version get the version of the object and join those of that version, and
// that entries of others are found and left.
func TestRenewed(t *testing.T) {
	live := ofKind(t, "x.io/v1", "Foo", "{spec: {a: b}}", ours("a"), ours("b"), person("c"))
	entries := live.GetManagedFields()
	entries[0].APIVersion, entries[1].APIVersion, entries[2].APIVersion = "x.io/v1alpha1", "x.io/v1", "x.io/v1alpha1"
	live.SetManagedFields(entries)
	found := DroppedIn(live, func(version string) bool { return version == "x.io/v1alpha1" }, func(manager string) bool { return manager == "op" })
	if diff := cmp.Diff(Dropped{Own: []int{0}, Others: []int{2}}, found); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	got := map[string]string{}
	for _, e := range found.Renewed(live) {
		got[e.Manager+" "+e.APIVersion] = FieldsOf(e).String()
	}
	if diff := cmp.Diff(map[string]string{"op x.io/v1": ".data.a\n.data.b", "kubectl-edit x.io/v1alpha1": ".data.c"}, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}
