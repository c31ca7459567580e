// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	discoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// coreVersions returns what the path /api has for clients that do not take aggregated discovery.
func coreVersions(groups discoveryv2.APIGroupDiscoveryList, host string) metav1.APIVersions {
	out := metav1.APIVersions{
		TypeMeta:                   metav1.TypeMeta{Kind: "APIVersions"},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: host}},
	}
	for _, group := range groups.Items {
		for _, version := range group.Versions {
			out.Versions = append(out.Versions, version.Version)
		}
	}
	return out
}

func groupList(groups discoveryv2.APIGroupDiscoveryList) metav1.APIGroupList {
	out := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, group := range groups.Items {
		out.Groups = append(out.Groups, groupOf(group, false))
	}
	return out
}

// groupOf returns a group: as a document of its own, or as a part of one.
func groupOf(group discoveryv2.APIGroupDiscovery, alone bool) metav1.APIGroup {
	out := metav1.APIGroup{Name: group.Name}
	if alone {
		out.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
	}
	for _, version := range group.Versions {
		gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
		out.Versions = append(out.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version})
	}
	out.PreferredVersion = out.Versions[0]
	return out
}

func resourceList(group string, version discoveryv2.APIVersionDiscovery) metav1.APIResourceList {
	gv := schema.GroupVersion{Group: group, Version: version.Version}
	out := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
	if group == "" {
		out.APIVersion = "" // as of a real server
	}
	for _, r := range version.Resources {
		namespaced := r.Scope == discoveryv2.ScopeNamespace
		out.APIResources = append(out.APIResources, metav1.APIResource{
			Name: r.Resource, SingularName: r.SingularResource, Namespaced: namespaced, Kind: r.ResponseKind.Kind,
			Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
		})
		for _, sub := range r.Subresources {
			part := metav1.APIResource{Name: r.Resource + "/" + sub.Subresource, Namespaced: namespaced, Kind: sub.ResponseKind.Kind, Verbs: sub.Verbs}
			if of := (schema.GroupVersion{Group: sub.ResponseKind.Group, Version: sub.ResponseKind.Version}); of != gv {
				part.Group, part.Version = of.Group, of.Version
			}
			out.APIResources = append(out.APIResources, part)
		}
	}
	return out
}
