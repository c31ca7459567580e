// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package upgrades_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/decide/drift"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// withEntries is a Foo with entries in managedFields, each as "manager operation version".
func withEntries(name string, entries ...string) string {
	var out []string
	for i, text := range entries {
		parts := strings.Fields(text)
		out = append(out, fmt.Sprintf(`{manager: %s, operation: %s, apiVersion: example.com/%s, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:of%d": {}}}}`, parts[0], parts[1], parts[2], i))
	}
	return fmt.Sprintf(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: %s, namespace: default, uid: u-%[1]s, generation: 1,
		managedFields: [%s]}, spec: {of0: x, of1: y}}`, name, strings.Join(out, ", "))
}

// applyAs applies a field of the Foo web with a field manager.
func applyAs(t *testing.T, c *kit.Cluster, manager string) error {
	t.Helper()
	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Foo", "metadata": map[string]any{"name": "web"}, "spec": map[string]any{"of9": "z"},
	}}
	foos := client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "foos"}).Namespace("default")
	_, err = foos.Apply(t.Context(), "web", o, metav1.ApplyOptions{FieldManager: manager})
	if _, is := drift.RejectedVersion(err); err != nil && !is {
		t.Fatal(err)
	}
	return err
}

// TestAnOwnersEntriesOfADroppedVersionAreRenewed holds that the operator renews its own entries on the objects that it handles with the
// next reconcile: they make the API server refuse the applies of everybody. It does so once, and not where others' are in the way, too.
func TestAnOwnersEntriesOfADroppedVersionAreRenewed(t *testing.T) {
	tests := map[string]struct {
		entries []string
		want    []string
		// refused: the API server refuses the apply of somebody else in the end.
		refused bool
	}{
		"of an update, a status and a mark": {
			entries: []string{"op Update v1alpha1", "op/observed/u-web Update v1beta1"}, want: []string{"op v1", "op/observed/u-web v1"},
		},
		"of an earlier name":                 {entries: []string{"was Update v1alpha1"}, want: []string{"was v1"}},
		"beside one of the object's version": {entries: []string{"op Update v1alpha1", "op Update v1"}, want: []string{"op v1"}},
		"where others have one, too": {
			entries: []string{"op Update v1alpha1", "flux Apply v1alpha1"}, want: []string{"op v1alpha1", "flux v1alpha1"}, refused: true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
				s := scene.NewStage(t, c)
				s.Operator.Was = []string{"was"}
				before := c.Load(withEntries("web", tt.entries...)).GetResourceVersion()
				s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) { foo.OnReconcile("h", s.Note("h")) })
				s.Launch()
				s.Called("h resume")
				o := c.Get(scene.Foos, "default", "web")
				var got []string
				for _, e := range o.GetManagedFields() {
					_, version, _ := strings.Cut(e.APIVersion, "/")
					got = append(got, e.Manager+" "+version)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("entries (-want +got):\n%s", diff)
				}
				if wrote := o.GetResourceVersion() != before; wrote == tt.refused {
					t.Errorf("it was written to: %t", wrote)
				}
				s.Forget()
				s.Process.Restart()
				s.Settle()
				s.Wrote()
				if err := applyAs(t, c, "helm"); (err != nil) != tt.refused {
					t.Errorf("an apply of somebody else ended with %v", err)
				}
			})
		})
	}
}

// TestARenewalThatFailsIsTriedAgain holds that each reconcile tries to renew entries until that succeeds, and that the log has one line about
// failures for the same reason.
func TestARenewalThatFailsIsTriedAgain(t *testing.T) {
	for name, fails := range map[string]func(s *scene.Stage) (end func()){
		"a missing right": func(s *scene.Stage) func() {
			s.Forbid("patch", scene.Foos)
			return func() { s.Allow("patch", scene.Foos) }
		},
		"an error of the API server": func(s *scene.Stage) func() {
			end := s.FailWhile("patch", scene.Foos, apierrors.NewInternalError(errors.New("storage is away")))
			return func() { end() }
		},
		"a time-out": func(s *scene.Stage) func() {
			end := s.FailWhile("patch", scene.Foos, apierrors.NewTimeoutError("too slow", 0))
			return func() { end() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
				s := scene.NewStage(t, c)
				c.Load(withEntries("web", "op Update v1alpha1"))
				s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) { foo.OnReconcile("h", s.Note("h")) })
				end := fails(s)
				log := scene.LaunchWithLog(s, "of a version that the CRD has dropped")
				s.WantLines(log, "could not be renewed")
				s.Resize(2)
				s.WantLines(log)
				end()
				s.Resize(3)
				s.WantLines(log, "^.*renewed entries")
				if err := applyAs(t, c, "helm"); err != nil {
					t.Errorf("an apply of somebody else: %v", err)
				}
			})
		})
	}
}

// TestAClientRenewsEntriesOfADroppedVersion holds that what a handler applies with its client is applied although an own entry was in
// the way, and that the error about an entry of others says what to do.
func TestAClientRenewsEntriesOfADroppedVersion(t *testing.T) {
	tests := map[string]struct {
		entries []string
		failed  string
	}{
		"an own entry":                   {entries: []string{"op Apply v1alpha1"}},
		"an own entry and one of others": {entries: []string{"op Apply v1alpha1", "flux Apply v1alpha1"}, failed: `remove that of "flux" (Apply, version example.com/v1alpha1): kubectl patch bars.example.com other -n default`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"}, kit.Resource{Name: "bars.v1.example.com", Kind: "Bar"})
				s := scene.NewStage(t, c)
				c.Load(strings.Replace(withEntries("other", tt.entries...), "kind: Foo", "kind: Bar", 1))
				failed, internal := "", false
				s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
					foo.OnCreate("h", func(ctx context.Context, r *dsl.Request) error {
						_, err := r.Client.Apply(ctx, map[string]any{
							"apiVersion": "example.com/v1", "kind": "Bar", "metadata": map[string]any{"name": "other", "namespace": "default"},
							"spec": map[string]any{"of0": "new"},
						})
						if err != nil {
							failed, internal = err.Error(), apierrors.IsInternalError(err)
							return dsl.Permanent(err)
						}
						return nil
					})
				})
				s.Launch()
				c.Create(scene.Web)
				s.Settle()
				value, _, _ := unstructured.NestedString(c.Get("bars.v1.example.com", "default", "other").Object, "spec", "of0")
				if (value == "new") != (tt.failed == "") || !strings.Contains(failed, tt.failed) || (tt.failed == "") == internal {
					t.Errorf("the value is %q, and the handler failed with %q, want %q", value, failed, tt.failed)
				}
			})
		})
	}
}
