// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	kjson "sigs.k8s.io/json"

	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/dsl/plain/scan"
)

// link is the connection to the API server. It gives objects as they come over the wire: most events are echoes of own
// writes, which need no decoding.
type link struct{ client rest.Interface }

func newLink(config *rest.Config) (link, error) {
	config = rest.CopyConfig(config)
	config.ContentConfig = rest.ContentConfig{
		ContentType: runtime.ContentTypeJSON, GroupVersion: &schema.GroupVersion{}, NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
	}
	config.WarningHandler = rest.NoWarnings{} // those about Endpoints are for people
	client, err := rest.UnversionedRESTClientFor(config)
	return link{client}, err
}

// path is that of an object, of a subresource, or without a name that of a kind.
func (k kind) path(namespace, name string, subresource ...string) []string {
	out := []string{"apis", k.resource.Group, k.resource.Version}
	if k.resource.Group == "" {
		out = []string{"api", k.resource.Version}
	}
	if namespace != "" {
		out = append(out, "namespaces", namespace)
	}
	out = append(out, k.resource.Resource)
	if name != "" {
		out = append(out, name)
	}
	return append(out, subresource...)
}

// send sends a write as a field manager, and returns the response.
func (n link) send(ctx context.Context, request *rest.Request, manager string, body any) ([]byte, error) {
	data, err := plain.AppendJSON(nil, body)
	if err != nil {
		return nil, err
	}
	if manager != "" {
		request = request.Param("fieldManager", manager)
	}
	return answered(request.Body(data).Do(ctx))
}

// answered returns a response, or the error that it has.
func answered(result rest.Result) ([]byte, error) {
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// create creates an object.
func (n link) create(ctx context.Context, path []string, manager string, o any) ([]byte, error) {
	return n.send(ctx, n.client.Post().AbsPath(path...), manager, o)
}

// merge sends a merge patch.
func (n link) merge(ctx context.Context, path []string, manager string, change map[string]any) ([]byte, error) {
	return n.send(ctx, n.client.Patch(types.MergePatchType).AbsPath(path...), manager, change)
}

// delete deletes an object.
func (n link) delete(ctx context.Context, path []string, options metav1.DeleteOptions) error {
	options.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}
	_, err := n.send(ctx, n.client.Delete().AbsPath(path...), "", options)
	return err
}

// list returns all objects of a kind in a namespace, and the version of the list. An empty namespace means all.
func (n link) list(ctx context.Context, k kind, namespace string) (items []json.RawMessage, version string, err error) {
	data, err := answered(n.client.Get().AbsPath(k.path(namespace, "")...).Do(ctx))
	if err != nil {
		return nil, "", err
	}
	var list struct {
		Metadata metav1.ListMeta
		Items    []json.RawMessage
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, "", fmt.Errorf("reading %s: %w", k.resource.Resource, err)
	}
	return list.Items, list.Metadata.ResourceVersion, nil
}

// watch returns the events of a kind from a version on, one in a line, until the context ends. It asks for no bookmarks: where a
// watch ends after a long time without changes, a list costs less than they do.
func (n link) watch(ctx context.Context, k kind, version string) (io.ReadCloser, error) {
	return n.client.Get().AbsPath(k.path("", "")...).Param("watch", "1").Param("resourceVersion", version).Stream(ctx)
}

// eventOf takes an event apart. There is no object if it cannot be read.
func eventOf(line []byte) (what string, object []byte) {
	line = bytes.TrimSpace(line)
	if !scan.Regular(line) {
		return "", nil
	}
	for key, value := range scan.Members(line) {
		switch string(key) {
		case "type":
			what = scan.Text(value)
		case "object":
			object = value
		}
	}
	return what, object
}

// identityOf says which object it is, and in which version. Other fields are empty.
func identityOf(data []byte) (*metav1.ObjectMeta, error) {
	if !scan.Regular(data) {
		return nil, fmt.Errorf("reading an object: %.40q is no JSON", data)
	}
	return identity(data), nil
}

// identity is identityOf for an object that is known to be JSON.
func identity(data []byte) *metav1.ObjectMeta {
	out := &metav1.ObjectMeta{}
	for key, value := range scan.Members(scan.Member(data, "metadata")) {
		switch string(key) {
		case "namespace":
			out.Namespace = scan.Text(value)
		case "name":
			out.Name = scan.Text(value)
		case "uid":
			out.UID = types.UID(scan.Text(value))
		case "resourceVersion":
			out.ResourceVersion = scan.Text(value)
		}
	}
	return out
}

// decode returns an object of a kind, without its managed fields, which can be half of it.
func (k kind) decode(data []byte) (object, error) {
	if managed := scan.Member(scan.Member(data, "metadata"), "managedFields"); managed != nil {
		at := cap(data) - cap(managed) // it is a part of the data
		data = slices.Concat(data[:at], []byte("null"), data[at+len(managed):])
	}
	o := k.blank()
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, o); err != nil {
		return nil, err
	}
	o.GetObjectKind().SetGroupVersionKind(k.resource.GroupVersion().WithKind(k.name))
	return o, nil
}
