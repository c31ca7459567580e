// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"sync"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl/plain/scan"
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

// read adds the groups of a document. A group is read when it is asked for: an operator uses few of them.
func (s *snapshot) read(document []byte) {
	for key, items := range scan.Members(document) {
		if string(key) != "items" {
			continue
		}
		for text := range scan.Elements(items) {
			name := scan.Text(scan.Member(metadata(text), "name"))
			g := s.entry(name)
			before := g.read // of a group that is there twice
			g.read = sync.OnceFunc(func() {
				if before != nil {
					before()
				}
				g.readFrom(name, text)
			})
		}
	}
}

// metadata returns the metadata of an object, without a look at what follows.
func metadata(object []byte) []byte {
	for key, value := range scan.Members(object) {
		if string(key) == "metadata" {
			return value
		}
	}
	return nil
}

// readFrom reads the versions of a group of this name. The first one is preferred.
func (g *group) readFrom(name string, text []byte) {
	for each := range scan.Elements(scan.Member(text, "versions")) {
		version := scan.Text(scan.Member(each, "version"))
		if scan.Text(scan.Member(each, "freshness")) == string(apidiscovery.DiscoveryFreshnessStale) {
			g.broken[version] = errStale
			continue
		}
		g.serves(version)
		g.resources[version] = resourcesIn(schema.GroupVersion{Group: name, Version: version}, scan.Member(each, "resources"))
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
				name := scan.Text(scan.Member(part, "subresource"))
				r.Status, r.Scale = r.Status || name == "status", r.Scale || name == "scale"
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
