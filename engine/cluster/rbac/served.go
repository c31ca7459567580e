// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Kind is the kind of an object, with its group and version.
type Kind = schema.GroupVersionKind

// Served has the properties of a resource that rights depend on.
type Served struct {
	// Resource is the plural.
	Resource string
	// Namespaced: its objects are namespaced. Status: it has a status subresource.
	Namespaced, Status bool
}

// Lookup returns the resource of a name or, if that is empty, of a kind. It always returns a result, which is a
// guess if the resource is not known.
type Lookup func(name dsl.ResourceName, kind Kind) Served

// Guess returns a lookup that sends no requests: it knows the operator's own CRDs, other CRDs that it is given, and the cluster-scoped
// built-in resources. It assumes that all others are namespaced, have a status subresource, and have the regular English
// plural of their kind.
func Guess(op *dsl.Operator, crds ...map[string]any) Lookup {
	known := map[schema.GroupResource]Served{}
	plurals := map[schema.GroupKind]string{}
	for _, r := range op.Resources() {
		crds = append(slices.Clip(crds), r.CRD) // the operator's own count more
	}
	for _, crd := range crds {
		if crd == nil {
			continue
		}
		text := func(path ...string) string {
			value, _, _ := unstructured.NestedString(crd, append([]string{"spec"}, path...)...)
			return value
		}
		plural := text("names", "plural")
		known[schema.GroupResource{Group: text("group"), Resource: plural}] = Served{
			Resource: plural, Namespaced: text("scope") != "Cluster", Status: true,
		}
		plurals[schema.GroupKind{Group: text("group"), Kind: text("names", "kind")}] = plural
	}
	return func(name dsl.ResourceName, kind Kind) Served {
		group, resource := name.Group, name.Resource
		if resource == "" {
			guess, _ := meta.UnsafeGuessKindToResource(kind)
			group, resource = kind.Group, guess.Resource
			if plural := plurals[kind.GroupKind()]; plural != "" {
				resource = plural
			}
		}
		if served, found := known[schema.GroupResource{Group: group, Resource: resource}]; found {
			return served
		}
		return Served{Resource: resource, Namespaced: !slices.Contains(withoutNamespace(group), resource), Status: true}
	}
}

// withoutNamespace are the resources of a group of Kubernetes that have no namespaces: those that
// `kubectl api-resources --namespaced=false` shows for Kubernetes 1.37.
func withoutNamespace(group string) []string {
	return map[string][]string{
		"": {"componentstatuses", "namespaces", "nodes", "persistentvolumes"},
		"admissionregistration.k8s.io": {
			"mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations",
			"validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations",
		},
		"apiextensions.k8s.io":         {"customresourcedefinitions"},
		"apiregistration.k8s.io":       {"apiservices"},
		"authentication.k8s.io":        {"selfsubjectreviews", "tokenreviews"},
		"authorization.k8s.io":         {"selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews"},
		"certificates.k8s.io":          {"certificatesigningrequests", "clustertrustbundles"},
		"flowcontrol.apiserver.k8s.io": {"flowschemas", "prioritylevelconfigurations"},
		"networking.k8s.io":            {"ingressclasses", "ipaddresses", "servicecidrs"},
		"node.k8s.io":                  {"runtimeclasses"},
		"rbac.authorization.k8s.io":    {"clusterrolebindings", "clusterroles"},
		"resource.k8s.io":              {"deviceclasses", "devicetaintrules", "resourceslices"},
		"scheduling.k8s.io":            {"priorityclasses"},
		"storagemigration.k8s.io":      {"storageversionmigrations"},
		"storage.k8s.io":               {"csidrivers", "csinodes", "storageclasses", "volumeattachments", "volumeattributesclasses"},
	}[group]
}
