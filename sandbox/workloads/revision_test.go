// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// revisions returns the ControllerRevisions: the number, the image and the owner of each, in their order.
func (s stage) revisions() (out []string) {
	s.t.Helper()
	synctest.Wait()
	for _, u := range s.list("ControllerRevision") {
		number, _, _ := unstructured.NestedInt64(u.Object, "revision")
		containers, _, _ := unstructured.NestedSlice(u.Object, "data", "spec", "template", "spec", "containers")
		patch, _, _ := unstructured.NestedString(u.Object, "data", "spec", "template", "$patch")
		image := containers[0].(map[string]any)["image"]
		out = append(out, fmt.Sprintf("%d %s %v of %s %s", number, patch, image, u.GetOwnerReferences()[0].Kind, u.GetAnnotations()["kubernetes.io/change-cause"]))
	}
	slices.Sort(out)
	return out
}

func TestDaemonSetsAndStatefulSetsHaveAHistory(t *testing.T) {
	const form = `
apiVersion: apps/v1
kind: %s
metadata: {name: web, annotations: {kubernetes.io/change-cause: first}}
spec:
  revisionHistoryLimit: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}`
	change := func(n int) string {
		return fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:%d"}]}}}}`, n)
	}
	for _, kind := range []string{"DaemonSet", "StatefulSet"} {
		t.Run(kind, func(t *testing.T) {
			run(t, func(t *testing.T, s stage) {
				s.create(fmt.Sprintf(form, kind))
				expect := func(what string, want ...string) {
					t.Helper()
					if diff := cmp.Diff(want, s.revisions()); diff != "" {
						t.Errorf("%s (-want +got):\n%s", what, diff)
					}
				}
				expect("a new object", "1 replace web:1 of "+kind+" first")
				s.patch(kind, "web", `{"metadata":{"annotations":{"kubernetes.io/change-cause":"second"}}}`)
				s.patch(kind, "web", change(2))
				expect("another template", "1 replace web:1 of "+kind+" first", "2 replace web:2 of "+kind+" second")
				s.patch(kind, "web", change(1))
				expect("the first template again", "2 replace web:2 of "+kind+" second", "3 replace web:1 of "+kind+" first")
				s.patch(kind, "web", change(3))
				expect("more than the limit", "3 replace web:1 of "+kind+" first", "4 replace web:3 of "+kind+" second")
			})
		})
	}
}
