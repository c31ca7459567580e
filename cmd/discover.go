// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// discovered is what an API server serves.
type discovered struct {
	discovery.CachedDiscoveryInterface
	mapper meta.RESTMapper
}

// discover returns what an API server serves. It is asked when that is needed, and once.
func discover(config *rest.Config) (*discovered, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	cached := memory.NewMemCacheClient(client)
	return &discovered{cached, restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)}, nil
}

// discoverResource is discover, with the resource that a person names; see [discovered.resource].
func discoverResource(config *rest.Config, name, namespace string) (*discovered, schema.GroupVersionResource, string, error) {
	found, err := discover(config)
	if err != nil {
		return nil, schema.GroupVersionResource{}, "", err
	}
	gvr, namespace, err := found.resource(name, namespace)
	return found, gvr, namespace, err
}

// resource returns the resource that a person names as for kubectl, and the namespace, which is empty if the resource has none.
func (d *discovered) resource(name, namespace string) (schema.GroupVersionResource, string, error) {
	gvr, err := d.mapper.ResourceFor(schema.ParseGroupResource(name).WithVersion(""))
	if err != nil {
		return gvr, "", err
	}
	kind, err := d.mapper.KindFor(gvr)
	if err != nil {
		return gvr, "", err
	}
	mapping, err := d.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return gvr, "", err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		namespace = ""
	}
	return gvr, namespace, nil
}
