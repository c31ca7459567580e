// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine/cluster/crd"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/handlers"
)

// crdRules are what installing CRDs takes.
func crdRules(verbs ...string) rbacv1.PolicyRule {
	return cluster.Rule("apiextensions.k8s.io", "customresourcedefinitions", verbs...)
}

// ownGroup is an API group that no other test has, nor this one when it runs again: a CRD goes later than its
// test.
func ownGroup(name string) string { return name + "-" + rand.String(6) + ".example.com" }

// described is an operator of WebApps in a group of the test's own.
func described(t *testing.T, group, version, spec string) *dsl.Operator {
	t.Helper()
	text := fmt.Sprintf(`
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: webapp}
resources:
  - resource: webapps.%s.%s
    schema:
      kind: WebApp
      spec: {%s}
      status: {readyReplicas: integer}
    handlers:
      - {id: status, set: {status: {readyReplicas: "${1}"}}}
`, version, group, spec)
	op, err := config.Parse("operator.yaml", []byte(text), handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		gvr := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
		// It may have gone with another cleanup. The test's context is over by now.
		_ = plane.Dynamic().Resource(gvr).Delete(context.WithoutCancel(t.Context()), "webapps."+group, metav1.DeleteOptions{})
	})
	return op
}

// install installs an operator's CRDs and returns what was written.
func install(t *testing.T, user *cluster.User, op *dsl.Operator) cluster.Writes {
	t.Helper()
	mark := plane.Mark(t)
	if err := crd.Install(t.Context(), op, user.Config(), crd.Settings{AllowBreaking: true}); err != nil {
		t.Fatal(err)
	}
	return plane.Writes(t, user.Name, mark)
}

func mustWrite(t *testing.T, what string, got cluster.Writes, want int) {
	t.Helper()
	if len(got) != want {
		t.Errorf("%s: %d writes, want %d\n%v", what, len(got), want, got)
	}
}

// webapp is a WebApp with the spec given, in JSON.
func webapp(group, name string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetAPIVersion(group + "/v1alpha1")
	o.SetKind("WebApp")
	o.SetName(name)
	return o
}

func TestACRDIsInstalledAndWrittenOnlyWhenItChanges(t *testing.T) {
	t.Parallel()
	group := ownGroup("install")
	user := plane.User("installer")
	user.Allow(t, crdRules("get", "create", "patch"))
	op := described(t, group, "v1alpha1", `image: string | required=true, replicas: integer | default=2 maximum=5, probe: {path: string | default=/healthz}`)
	mustWrite(t, "installing", install(t, user, op), 1)
	mustWrite(t, "installing again", install(t, user, op), 0)

	objects := plane.Objects("webapps.v1alpha1."+group, plane.Namespace(t))
	got := objects.Create(t, webapp(group, "first", map[string]any{"image": "nginx"}))
	want := map[string]any{"image": "nginx", "replicas": int64(2), "probe": map[string]any{"path": "/healthz"}}
	if diff := cmp.Diff(want, got.Object["spec"]); diff != "" {
		t.Errorf("spec with defaults (-want +got):\n%s", diff)
	}

	more := described(t, group, "v1alpha1", `image: string | required=true, replicas: integer | default=2 maximum=5, mode: string | default=fast`)
	mustWrite(t, "a field comes, another goes", install(t, user, more), 1)
	mustWrite(t, "installing that again", install(t, user, more), 0)
	second := objects.Await(t, "first", "the new field", func(o *unstructured.Unstructured) bool {
		mode, _, _ := unstructured.NestedString(o.Object, "spec", "mode")
		return mode == "fast"
	})
	if _, found, _ := unstructured.NestedMap(second.Object, "spec", "probe"); found {
		t.Error("the field that went is still there")
	}
	fewer := described(t, group, "v1alpha1", `image: string | required=true, replicas: integer | default=2 maximum=5`)
	mustWrite(t, "a field goes and none comes", install(t, user, fewer), 1)
	mustWrite(t, "back to the first", install(t, user, op), 1)
}

func TestACRDOfOthersIsNotTakenOver(t *testing.T) {
	t.Parallel()
	group := ownGroup("others")
	op := described(t, group, "v1alpha1", `image: string`)
	user := plane.User("installer")
	user.Allow(t, crdRules("get", "create", "patch"))
	install(t, user, op)
	admin := plane.Objects(crds, "")
	admin.Patch(t, "webapps."+group, `{"spec":{"names":{"shortNames":["wa"]}}}`)
	mustWrite(t, "what others added does not matter", install(t, user, op), 0)

	gvr := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	change := `[{"op":"add","path":"/spec/versions/0/additionalPrinterColumns","value":[{"name":"X","type":"string","jsonPath":".spec.image"}]}]`
	_, err := plane.Dynamic().Resource(gvr).Patch(t.Context(), "webapps."+group, types.JSONPatchType, []byte(change), metav1.PatchOptions{FieldManager: "somebody"})
	if err != nil {
		t.Fatal(err)
	}
	err = crd.Install(t.Context(), op, user.Config(), crd.Settings{})
	for _, want := range []string{"installing CRD of webapps.v1alpha1." + group, `"somebody"`, ".spec.versions", "--install-crds=takeover"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q in it", err, want)
		}
	}
}

// TestARenamedOperatorWithItsEarlierNameHasItsCRD: what it applied under the earlier name is its own, and goes when the
// configuration has it no more.
func TestARenamedOperatorWithItsEarlierNameHasItsCRD(t *testing.T) {
	t.Parallel()
	group := ownGroup("was")
	user := plane.User("installer")
	user.Allow(t, crdRules("get", "create", "patch"))
	install(t, user, described(t, group, "v1alpha1", `image: string, dropped: string`))
	renamed := described(t, group, "v1alpha1", `image: string, replicas: integer`)
	renamed.Name, renamed.Was = "webapp2", []string{"webapp"}
	mustWrite(t, "the marks move in two writes, and the schema changes in one", install(t, user, renamed), 3)
	live := plane.Objects(crds, "").Get(t, "webapps."+group)
	text := asJSON(t, live.Object)
	for part, wanted := range map[string]bool{`"replicas"`: true, `"dropped"`: false, `webapp.handwerk.dev`: false, `"manager":"webapp"`: false} {
		if strings.Contains(text, part) != wanted {
			t.Errorf("the CRD has %s: %t, want %t: %s", part, !wanted, wanted, text)
		}
	}
	mustWrite(t, "installing again", install(t, user, renamed), 0)
}

// TestARenamedOperatorTakesOverItsCRD: under its new name it may not change the CRD, until it is asked to take it
// over; from then on the CRD is its own.
func TestARenamedOperatorTakesOverItsCRD(t *testing.T) {
	t.Parallel()
	group := ownGroup("renamed")
	user := plane.User("installer")
	user.Allow(t, crdRules("get", "create", "patch"))
	install(t, user, described(t, group, "v1alpha1", `image: string`))
	renamed := described(t, group, "v1alpha1", `image: string, replicas: integer`)
	renamed.Name = "webapp2"
	err := crd.Install(t.Context(), renamed, user.Config(), crd.Settings{})
	for _, want := range []string{`"webapp"`, "--install-crds=takeover"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q in it", err, want)
		}
	}
	if err := crd.Install(t.Context(), renamed, user.Config(), crd.Settings{TakeOver: true}); err != nil {
		t.Fatal(err)
	}
	live := plane.Objects(crds, "").Get(t, "webapps."+group)
	if !strings.Contains(asJSON(t, live.Object["spec"]), `"replicas"`) {
		t.Errorf("the CRD has not the new field: %v", live.Object["spec"])
	}
	mustWrite(t, "installing again, without taking over", install(t, user, renamed), 0)
	more := described(t, group, "v1alpha1", `image: string, replicas: integer, host: string`)
	more.Name = "webapp2"
	mustWrite(t, "a change, without taking over", install(t, user, more), 1)
}

func TestACRDThatMustNotBeChangedIsLeftAlone(t *testing.T) {
	t.Parallel()
	group := ownGroup("refuse")
	user := plane.User("installer")
	user.Allow(t, crdRules("get", "create", "patch"))
	install(t, user, described(t, group, "v1alpha1", `image: string`))
	tests := map[string]struct {
		op   *dsl.Operator
		want string
	}{
		"another version": {described(t, group, "v1", `image: string`), "objects may be stored as v1alpha1, a version that the configuration does not have"},
		"another kind":    {changed(t, described(t, group, "v1alpha1", `image: string`), "Other", "spec", "names", "kind"), "its kind is WebApp on the cluster and Other in the configuration"},
		"another scope":   {changed(t, described(t, group, "v1alpha1", `image: string`), "Cluster", "spec", "scope"), "its scope is Namespaced on the cluster and Cluster"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			mark := plane.Mark(t)
			err := crd.Install(t.Context(), test.op, user.Config(), crd.Settings{})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want %q in it", err, test.want)
			}
			mustWrite(t, "refused", plane.Writes(t, user.Name, mark), 0)
		})
	}
}

// changed sets a value of an operator's only CRD.
func changed(t *testing.T, op *dsl.Operator, value string, path ...string) *dsl.Operator {
	t.Helper()
	if err := unstructured.SetNestedField(op.Resources()[0].CRD, value, path...); err != nil {
		t.Fatal(err)
	}
	return op
}

func TestARefusedInstallOfCRDsNamesTheVerb(t *testing.T) {
	t.Parallel()
	group := ownGroup("rights")
	op := described(t, group, "v1alpha1", `image: string`)
	for name, verbs := range map[string][]string{"get": {"list"}, "patch": {"get", "create"}, "create": {"get", "patch"}} {
		t.Run(name, func(t *testing.T) {
			user := plane.User("powerless")
			user.Allow(t, crdRules(verbs...))
			err := crd.Install(t.Context(), op, user.Config(), crd.Settings{})
			want := "this process may not " + name + " customresourcedefinitions.apiextensions.k8s.io: --install-crds needs get, create and patch"
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error is %v, want %q in it", err, want)
			}
		})
	}
}
