// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"sync"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/engine/cached/scan"
)

// errStale is the fault of a group and version whose own server does not answer the API server.
var errStale = errors.New("what the API server knows of it is stale")

// documents are the two of aggregated discovery: that of the core group, and that of all others.
type documents [2][]byte

// download asks for both documents at once: client-go asks for one after the other. It reports false if the server has no
// aggregated discovery.
func download(ctx context.Context, client rest.Interface) (out documents, aggregated bool, err error) {
	if client == nil { // as of a fake
		return out, false, nil
	}
	var errs [len(out)]error
	var asking sync.WaitGroup
	for i, path := range []string{"/api", "/apis"} {
		asking.Go(func() { out[i], errs[i] = document(ctx, client, path) })
	}
	asking.Wait()
	if apierrors.IsNotFound(errs[0]) { // as of an aggregated API server
		out[0], errs[0] = []byte("{}"), nil
	}
	for _, err := range errs {
		if err != nil {
			return out, false, err
		}
	}
	return out, out[0] != nil && out[1] != nil, nil
}

// document asks for one document. It is nil if the server answers in another form.
func document(ctx context.Context, client rest.Interface, path string) ([]byte, error) {
	var kind string
	body, err := client.Get().AbsPath(path).SetHeader("Accept", discovery.AcceptV2+","+discovery.AcceptV1).Do(ctx).ContentType(&kind).Raw()
	if err != nil {
		return nil, err
	}
	form := apidiscovery.SchemeGroupVersion.WithKind("APIGroupDiscoveryList")
	if is, err := discovery.ContentTypeIsGVK(kind, form); err != nil || !is || !scan.Regular(body) {
		return nil, nil //nolint:nilerr // another form
	}
	return body, nil
}

// read adds the groups of a document.
func (s *snapshot) read(document []byte) {
	for group := range scan.Elements(scan.Member(document, "items")) {
		name := scan.Text(scan.Member(scan.Member(group, "metadata"), "name"))
		var versions []string
		for version := range scan.Elements(scan.Member(group, "versions")) {
			gv := schema.GroupVersion{Group: name, Version: scan.Text(scan.Member(version, "version"))}
			if scan.Text(scan.Member(version, "freshness")) == string(apidiscovery.DiscoveryFreshnessStale) {
				s.broken[gv] = errStale
				continue
			}
			versions = append(versions, gv.Version)
			s.resources[gv] = resourcesIn(gv, scan.Member(version, "resources"))
		}
		s.versions[name] = versions // the first one is preferred
	}
}

// resourcesIn returns the resources of a list. One without a kind only has subresources.
func resourcesIn(gv schema.GroupVersion, list []byte) (out []Resource) {
	for each := range scan.Elements(list) {
		if r := resourceOf(gv, each); r.Kind != "" {
			out = append(out, r)
		}
	}
	return out
}

func resourceOf(gv schema.GroupVersion, text []byte) (r Resource) {
	for key, value := range scan.Members(text) {
		switch string(key) {
		case "resource":
			r.GVR = gv.WithResource(scan.Text(value))
		case "responseKind":
			r.Kind = scan.Text(scan.Member(value, "kind"))
		case "scope":
			r.Namespaced = scan.Text(value) == string(apidiscovery.ScopeNamespace)
		case "singularResource":
			r.Singular = scan.Text(value)
		case "shortNames":
			r.Short = texts(value)
		case "verbs":
			r.Verbs = texts(value)
		case "subresources":
			for part := range scan.Elements(value) {
				r.Status = r.Status || scan.Text(scan.Member(part, "subresource")) == "status"
			}
		}
	}
	return r
}

func texts(list []byte) (out []string) {
	for each := range scan.Elements(list) {
		out = append(out, scan.Text(each))
	}
	return out
}
