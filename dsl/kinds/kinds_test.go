// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl/kinds"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// list has a few kinds of Kubernetes' own, and those of a CRD.
func list(final bool) *kinds.List {
	kind := func(group, version, kind, resource string, short ...string) kinds.Kind {
		return kinds.Kind{
			GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, Resource: resource, Short: short, Namespaced: true, Watched: true,
		}
	}
	out := &kinds.List{
		Kinds: []kinds.Kind{
			kind("", "v1", "Pod", "pods", "po"), kind("", "v1", "Event", "events"), kind("apps", "v1", "Deployment", "deployments", "deploy"),
			kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa"),
			kind("autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa"), kind("autoscaling", "v1", "Scaler", "scalers"),
			kind("events.k8s.io", "v1", "Event", "events"),
		},
		Own: func(group string) bool {
			return slices.Contains([]string{"", "apps", "autoscaling", "events.k8s.io"}, group)
		},
		Unsure: func(group string) bool { return group == "broken.example.com" },
		Where:  "Kubernetes 1.x", Final: final,
	}
	unwatched := kind("", "v1", "Binding", "bindings")
	unwatched.Watched = false
	out.Kinds = append(out.Kinds, unwatched)
	return out.With(crd("example.com", "v1", "v1beta1"), crd("example.net", "v1"))
}

// crd returns the CRD of databases in a group.
func crd(group string, versions ...string) map[string]any {
	var each []any
	for _, version := range versions {
		each = append(each, map[string]any{"name": version})
	}
	return map[string]any{"spec": map[string]any{

		"group": group, "scope": "Cluster", "names": map[string]any{"plural": "databases", "kind": "Database"}, "versions": each,
	}}
}

// said is what is said against something, with its place and whether it is a warning.
func said(err error) string {
	misfit, is := errors.AsType[*shape.Misfit](err)
	switch {
	case err == nil:
		return ""
	case !is:
		return "no misfit: " + err.Error()
	case misfit.Warning:
		return fmt.Sprint("warning: ", misfit.Path, " ", misfit.Message)
	}
	return fmt.Sprint(misfit.Path, " ", misfit.Message)
}

func TestAKindIsKnownOrReported(t *testing.T) {
	tests := map[string]struct {
		apiVersion, kind string
		want             string
		// final is what is said where a cluster has the last word, when that is something else.
		final string
	}{
		"a kind that there is":                         {"apps/v1", "Deployment", "", ""},
		"a kind of a CRD, in any of its versions":      {"example.com/v1beta1", "Database", "", ""},
		"a mistyped kind":                              {"apps/v1", "Deploymnt", `[kind] unknown kind "Deploymnt" in apps/v1 (did you mean "Deployment"?)`, ""},
		"a kind in another group":                      {"v1", "Deployment", `[apiVersion] v1 has no Deployment: want apps/v1`, ""},
		"a kind in two other groups":                   {"apps/v1", "Event", `[apiVersion] apps/v1 has no Event: want v1 or events.k8s.io/v1`, ""},
		"a kind in another version of the group":       {"autoscaling/v2", "Scaler", `[apiVersion] autoscaling/v2 has no Scaler: want autoscaling/v1`, ""},
		"a mistyped kind of another group":             {"v1", "Deploymet", `[kind] unknown kind "Deploymet" in v1 (did you mean "Deployment" of apps/v1?)`, ""},
		"a kind like none":                             {"apps/v1", "Zebra", `[kind] unknown kind "Zebra" in apps/v1 (want Deployment)`, ""},
		"a plural where a kind is wanted":              {"apps/v1", "deployments", `[kind] unknown kind "deployments" in apps/v1 (did you mean "Deployment"?)`, ""},
		"a version that is not known":                  {"apps/v2", "Deployment", `warning: [apiVersion] Kubernetes 1.x has no API version apps/v2: want apps/v1`, `[apiVersion] Kubernetes 1.x has no API version apps/v2: want apps/v1`},
		"a version and a kind that are not known":      {"apps/v2", "Zebra", `warning: [apiVersion] Kubernetes 1.x has no API version apps/v2`, `[apiVersion] Kubernetes 1.x has no API version apps/v2`},
		"a version that is not known, of two":          {"autoscaling/v2beta2", "HorizontalPodAutoscaler", `warning: [apiVersion] Kubernetes 1.x has no API version autoscaling/v2beta2: want autoscaling/v2 or autoscaling/v1`, `[apiVersion] Kubernetes 1.x has no API version autoscaling/v2beta2: want autoscaling/v2 or autoscaling/v1`},
		"a version of a CRD's group":                   {"example.com/v2", "Database", `warning: [apiVersion] API version example.com/v2 is not known: want example.com/v1 or example.com/v1beta1`, ""},
		"a kind of a CRD's group that may come":        {"example.com/v1", "Backup", "", ""},
		"a kind of a CRD's group that is nearly there": {"example.com/v1", "Databse", `warning: [kind] unknown kind "Databse" in example.com/v1 (did you mean "Database"?)`, `[kind] unknown kind "Databse" in example.com/v1 (did you mean "Database"?)`},
		"a group that a CRD may bring":                 {"cert-manager.io/v1", "Certificate", "", ""},
		"a group that a CRD may bring, with our kind":  {"apps.example.org/v1", "Deployment", "", ""},
		"a group that no CRD can bring":                {"backups/v1", "Backup", `[apiVersion] there is no API group backups (groups other than Kubernetes' own have a dot)`, ""},
		"a group that no CRD can bring, with our kind": {"core/v1", "Pod", `[apiVersion] there is no API group core: want v1`, ""},
		"a mistyped group":                             {"app/v1", "Deployment", `[apiVersion] there is no API group app (did you mean apps/v1?)`, ""},
		"a mistyped group with a dot":                  {"event.k8s.io/v1", "Event", `warning: [apiVersion] there is no API group event.k8s.io (did you mean events.k8s.io/v1?)`, ""},
		"a group whose discovery fails":                {"broken.example.com/v1", "Pod", "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, final := range []bool{false, true} {
				want := test.want
				if final && test.final != "" {
					want = test.final
				}
				known, err := list(final).Kind(schema.FromAPIVersionAndKind(test.apiVersion, test.kind))
				if got := said(err); got != want {
					t.Errorf("final %t: it says\n%s, want\n%s", final, got, want)
				}
				if !known.Empty() && (known.Own != (known.Group != "example.com") || known.Namespaced != known.Own) {
					t.Errorf("it is known as %+v", known)
				}
			}
		})
	}
}

func TestAResourceIsKnownOrReported(t *testing.T) {
	tests := map[string]struct {
		group, version, resource string
		unwatched                bool
		want                     string
	}{
		"a resource that there is":                {"apps", "v1", "deployments", false, ""},
		"a resource without a version":            {"autoscaling", "", "scalers", false, ""},
		"a resource of the core group":            {"", "", "pods", false, ""},
		"a mistyped resource":                     {"apps", "", "deploymnts", false, `[] unknown resource "deploymnts" in apps (did you mean "deployments"?)`},
		"a short name":                            {"", "v1", "po", false, `[] v1 has no po: want pods.v1`},
		"a resource of another group":             {"", "", "deployments", false, `[] the core group has no deployments: want deployments.v1.apps`},
		"a resource of a CRD, without its group":  {"", "", "databases", false, `[] the core group has no databases: want databases.v1.example.com or databases.v1beta1.example.com or databases.v1.example.net`},
		"a singular name of a CRD":                {"", "", "database", false, `[] the core group has no database: want databases.v1.example.com or databases.v1beta1.example.com or databases.v1.example.net`},
		"a name that nothing has":                 {"", "", "wd", false, `[] unknown resource "wd" in the core group (want the plural and the group, as in widgets.example.com)`},
		"a mistyped resource of another group":    {"", "", "deploymets", false, `[] unknown resource "deploymets" in the core group (did you mean deployments.v1.apps?)`},
		"a version that is not known":             {"", "v2", "pods", false, `warning: [] Kubernetes 1.x has no API version v2: want pods.v1`},
		"a resource that cannot be watched":       {"", "v1", "bindings", false, `[] bindings cannot be listed and watched`},
		"a resource that need not be watched":     {"", "v1", "bindings", true, ""},
		"nothing that cannot be watched is meant": {"", "v1", "bindingss", false, `[] unknown resource "bindingss" in v1 (want one of pods, events)`},
		"a resource that a CRD may bring":         {"example.org", "v1", "zebras", false, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := list(false).Resource(schema.GroupVersionResource{Group: test.group, Version: test.version, Resource: test.resource}, !test.unwatched)
			if got := said(err); got != test.want {
				t.Errorf("it says\n%s, want\n%s", got, test.want)
			}
		})
	}
}
