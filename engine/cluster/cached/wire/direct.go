// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// direct is a dynamic client that sends the frequent requests itself.
type direct struct {
	dynamic.Interface
	sender *sender
}

// Resource implements [dynamic.Interface].
func (d direct) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	c := d.Interface.Resource(gvr)
	return directResource{directObjects{c, d.sender, gvr, ""}, c}
}

type directResource struct {
	directObjects
	all dynamic.NamespaceableResourceInterface
}

// Namespace implements [dynamic.NamespaceableResourceInterface].
func (r directResource) Namespace(namespace string) dynamic.ResourceInterface {
	return directObjects{r.all.Namespace(namespace), r.sender, r.gvr, namespace}
}

// directObjects are the objects of a resource, in a namespace unless that is empty.
type directObjects struct {
	dynamic.ResourceInterface
	sender    *sender
	gvr       schema.GroupVersionResource
	namespace string
}

// Get implements [dynamic.ResourceInterface], as the others.
func (o directObjects) Get(ctx context.Context, name string, options metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error) {
	if path, ok := o.path(name, sub); ok && options == (metav1.GetOptions{}) {
		var u *unstructured.Unstructured
		if u, ctx = o.sender.object(ctx, call{method: http.MethodGet, path: path}, nil); u != nil {
			return u, nil
		}
	}
	return o.ResourceInterface.Get(ctx, name, options, sub...)
}

func (o directObjects) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, sub ...string) (*unstructured.Unstructured, error) {
	path, ok := o.path(name, sub)
	if query, usual := queryOf(options); ok && usual && data != nil {
		var u *unstructured.Unstructured
		if u, ctx = o.sender.object(ctx, call{http.MethodPatch, path, query, string(kind)}, data); u != nil {
			return u, nil
		}
	}
	return o.ResourceInterface.Patch(ctx, name, kind, data, options, sub...)
}

func (o directObjects) Apply(ctx context.Context, name string, object *unstructured.Unstructured, options metav1.ApplyOptions, sub ...string) (*unstructured.Unstructured, error) {
	path, ok := o.path(name, sub)
	query, usual := queryOf(options.ToPatchOptions())
	if data, err := plain.AppendJSON(nil, object.Object); ok && usual && err == nil && len(object.GetManagedFields()) == 0 {
		var u *unstructured.Unstructured
		if u, ctx = o.sender.object(ctx, call{http.MethodPatch, path, query, string(types.ApplyYAMLPatchType)}, data); u != nil {
			return u, nil
		}
	}
	return o.ResourceInterface.Apply(ctx, name, object, options, sub...)
}

// path returns the path of an object, or of a subresource; false if its parts need the checks of the dynamic client.
func (o directObjects) path(name string, sub []string) (string, bool) {
	odd := func(part string) bool { return part == "" || len(rest.IsValidPathSegmentName(part)) > 0 }
	if odd(name) || odd(o.gvr.Version) || o.namespace != "" && odd(o.namespace) || slices.ContainsFunc(sub, odd) {
		return "", false
	}
	group, namespace := "/api/", "/"
	if o.gvr.Group != "" {
		group = "/apis/" + o.gvr.Group + "/"
	}
	if o.namespace != "" {
		namespace = "/namespaces/" + o.namespace + "/"
	}
	path := group + o.gvr.Version + namespace + o.gvr.Resource + "/" + name
	if len(sub) > 0 {
		path += "/" + strings.Join(sub, "/")
	}
	return path, true
}

// queryOf returns the query of a patch; false if its options are unusual.
func queryOf(options metav1.PatchOptions) (query string, usual bool) {
	if len(options.DryRun) > 0 || options.FieldValidation != "" || options.TypeMeta != (metav1.TypeMeta{}) {
		return "", false
	}
	if options.FieldManager != "" {
		query = "fieldManager=" + url.QueryEscape(options.FieldManager)
	}
	if options.Force == nil {
		return query, true
	}
	if query != "" {
		query += "&"
	}
	if *options.Force {
		return query + "force=true", true
	}
	return query + "force=false", true
}
