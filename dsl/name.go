// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/handwerk-dev/handwerk/dsl/builtin"
	"github.com/handwerk-dev/handwerk/dsl/kinds"
)

// ResourceName names a resource: plural, version and group. Version is empty for the version that the API server
// prefers; Group is empty for the core group.
type ResourceName struct {
	Resource, Version, Group string
}

// celName is an identifier in an expression.
var celName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// IsIdentifier reports whether a text can be a name in CEL: letters, digits and _, and no digit first.
func IsIdentifier(text string) bool { return celName.MatchString(text) }

var apiVersion = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

// ParseResourceName reads "deployments.v1.apps", "deployments.apps" (the preferred version), "pods.v1" and "pods". A
// built-in kind has all its names of kubectl, and without a version needs no group: "deploy", "Deployment" and
// "deployment.apps" are deployments.apps. No CRD of a cluster can change what a name means.
func ParseResourceName(text string) (ResourceName, error) {
	resource, rest, _ := strings.Cut(text, ".")
	n := ResourceName{Resource: resource}
	version, group, _ := strings.Cut(rest, ".")
	if apiVersion.MatchString(version) {
		n.Version, n.Group = version, group
	} else {
		n.Group = rest
	}
	n.resolve()
	if errs := validation.IsDNS1035Label(n.Resource); len(errs) > 0 {
		return n, fmt.Errorf("reading resource %q: %q is not the plural name of a resource (want lower case, as in deployments.v1.apps)", text, n.Resource)
	}
	if errs := validation.IsDNS1123Subdomain(n.Group); n.Group != "" && len(errs) > 0 {
		return n, fmt.Errorf("reading resource %q: %q is not an API group (want plural.version.group, as in deployments.v1.apps)", text, n.Group)
	}
	return n, nil
}

// builtInKinds returns the list of built-in kinds.
var builtInKinds = sync.OnceValue(func() *kinds.List {
	known, err := builtin.Open()
	if err != nil {
		return &kinds.List{} // names then stay as they are; whatever checks the operator reports the error
	}
	return known.List()
})

// resolve replaces another name of a built-in kind by its plural and its group.
func (n *ResourceName) resolve() {
	if !BuiltIn(n.Group) {
		return
	}
	if k, found := builtInKinds().Named(n.Resource, schema.GroupVersion{Group: n.Group, Version: n.Version}); found {
		n.Resource, n.Group = k.Resource, k.Group
	}
}

// UnmarshalText is [ParseResourceName].
func (n *ResourceName) UnmarshalText(text []byte) (err error) {
	*n, err = ParseResourceName(string(text))
	return err
}

// BuiltIn reports whether the kinds of a group are built into the API server, and not defined by CRDs. Groups of CRDs
// have a dot.
func BuiltIn(group string) bool {
	return !strings.Contains(group, ".") || slices.Contains([]string{
		"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io",
		"authorization.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io",
		"flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io",
		"rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
	}, group)
}

// String writes the name so that ParseResourceName reads it back.
func (n ResourceName) String() string {
	out := n.Resource
	if n.Version != "" {
		out += "." + n.Version
	}
	if n.Group != "" {
		out += "." + n.Group
	}
	return out
}

// GVR returns the name in the type of the API machinery. Its version may be empty.
func (n ResourceName) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: n.Group, Version: n.Version, Resource: n.Resource}
}

// Objects identifies the resource's objects: two names with the same result have the same objects, however they are
// spelled. All versions of a resource have the same objects, and so do the Events of the core group and of
// events.k8s.io.
func (n ResourceName) Objects() schema.GroupResource {
	if n.Resource == "events" && n.Group == "" {
		return schema.GroupResource{Group: "events.k8s.io", Resource: "events"}
	}
	return schema.GroupResource{Group: n.Group, Resource: n.Resource}
}
