// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/engine/cached"
	"github.com/handwerk-dev/handwerk/engine/cached/scan"
)

// events decodes the frames of a watch.
type events struct{ runtime.Serializer }

// Decode splits an event if it is written in the form of API servers. The object shares the bytes of the frame.
func (e events) Decode(frame []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	event, is := into.(*metav1.WatchEvent)
	kind, object := split(frame)
	if !is || object == nil {
		return e.Serializer.Decode(frame, defaults, into)
	}
	event.Type, event.Object.Raw = kind, object
	return event, &schema.GroupVersionKind{Version: "v1", Kind: "WatchEvent"}, nil
}

// split returns the type and the object of an event; nil if it is written in another form.
func split(frame []byte) (kind string, object []byte) {
	rest, begins := bytes.CutPrefix(frame, []byte(`{"type":"`))
	name, rest, typed := bytes.Cut(rest, []byte(`","object":`))
	if !begins || !typed || bytes.IndexFunc(name, func(r rune) bool { return r < 'A' || r > 'Z' }) >= 0 {
		return "", nil
	}
	object, rest = scan.First(rest)
	if string(bytes.TrimSpace(rest)) != "}" {
		return "", nil
	}
	return string(name), object
}

// objects decodes objects and lists of them.
type objects struct {
	runtime.Serializer
	style style
}

// Decode copies an object's bytes if it keeps them, because they belong to the caller.
func (o objects) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	switch of := into.(type) {
	case nil:
		if o.style == carried && scan.Regular(data) {
			if u, kind := carrier(data, metav1.TypeMeta{}); u != nil {
				return u, kind, nil
			}
			if u, kind := o.namesake(data); u != nil {
				return u, kind, nil
			}
		}
	case *unstructured.UnstructuredList:
		if kind := o.fill(of, data); kind != nil {
			return of, kind, nil
		}
	case *unstructured.Unstructured:
		if kind := o.decode(of, data); kind != nil {
			return of, kind, nil
		}
	}
	return o.Serializer.Decode(data, defaults, into)
}

// namesake returns the tree of an object whose kind is Status in another group than the API machinery's, as in a
// bookmark; nil for other objects. The dynamic client's decoder would read such an object as an error.
func (o objects) namesake(data []byte) (*unstructured.Unstructured, *schema.GroupVersionKind) {
	u := &unstructured.Unstructured{}
	kind := o.decode(u, data)
	if kind == nil || kind.Kind != "Status" || kind.Group == "" {
		return nil, nil
	}
	return u, kind
}

// decode decodes an object to a tree. If client-go's decoder must report an error, it returns nil and leaves u
// unchanged.
func (o objects) decode(u *unstructured.Unstructured, data []byte) *schema.GroupVersionKind {
	if !scan.Regular(data) {
		return nil
	}
	read := scan.Tree
	if o.style == slim {
		read = scan.Slim
	}
	tree := unstructured.Unstructured{Object: read(data)}
	kind := tree.GroupVersionKind()
	if kind.Kind == "" {
		return nil
	}
	u.Object = tree.Object
	return &kind
}

// carrier returns a carrier of a stored object; nil for other regular data. The given kind is for objects without
// one, as in lists of built-in kinds.
func carrier(data []byte, of metav1.TypeMeta) (*unstructured.Unstructured, *schema.GroupVersionKind) {
	var kind metav1.TypeMeta
	var metadata []byte
	for key, value := range scan.Members(data) {
		switch string(key) {
		case "apiVersion":
			kind.APIVersion = scan.Text(value)
		case "kind":
			kind.Kind = scan.Text(value)
		case "metadata":
			metadata = value
		}
	}
	nameless := kind == metav1.TypeMeta{}
	if nameless {
		kind = of
	}
	id := identityIn(metadata)
	if !id.stored || kind.Kind == "" || kind.APIVersion == "" {
		return nil, nil
	}
	if nameless {
		data = named(data, kind)
	} else {
		data = bytes.Clone(data)
	}
	gvk := kind.GroupVersionKind()
	u := cached.Carrier(kind, id.namespace, id.name, id.version, data)
	return &u, &gvk
}

// identity are the fields of metadata that informers use.
type identity struct {
	namespace, name, version string
	// stored: the metadata is that of a stored object. A Status and a bookmark have no uid; a bookmark with one is
	// recognised by its annotation.
	stored bool
}

func identityIn(metadata []byte) (id identity) {
	marked := false
	for key, value := range scan.Members(metadata) {
		switch string(key) {
		case "annotations":
			marked = bytes.Contains(value, []byte(metav1.InitialEventsAnnotationKey))
		case "namespace":
			id.namespace = scan.Text(value)
		case "name":
			id.name = scan.Text(value)
		case "uid":
			id.stored = scan.Text(value) != ""
		case "resourceVersion":
			id.version = scan.Text(value)
		}
	}
	id.stored = id.stored && !marked
	return id
}

// named returns an object's bytes with a kind added.
func named(object []byte, of metav1.TypeMeta) []byte {
	rest := bytes.TrimLeft(bytes.TrimSpace(object)[1:], " \t\r\n")
	out := make([]byte, 0, len(rest)+len(of.APIVersion)+len(of.Kind)+len(`{"apiVersion":"","kind":"",`))
	out = append(append(out, `{"apiVersion":"`...), of.APIVersion...)
	out = append(append(out, `","kind":"`...), of.Kind...)
	out = append(out, `",`...)
	return append(out, rest...) // an object with a uid is not empty
}

// fill converts a page to a list of carriers. If the page has anything but stored objects, it returns nil and
// leaves the list unchanged.
func (o objects) fill(list *unstructured.UnstructuredList, data []byte) *schema.GroupVersionKind {
	if o.style != carried || !scan.Regular(data) {
		return nil
	}
	tree, page := map[string]any{}, []byte(nil)
	for key, value := range scan.Members(data) {
		if string(key) == "items" {
			page = value
			continue
		}
		tree[scan.Key(key)] = scan.Value(value)
	}
	head := unstructured.Unstructured{Object: tree}
	kind := head.GroupVersionKind()
	odd := strings.ContainsFunc(head.GetAPIVersion()+kind.Kind, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' })
	if page == nil || page[0] != '[' || kind.Kind == "" || head.GetAPIVersion() == "" || odd {
		return nil
	}
	items := []unstructured.Unstructured{}
	of := metav1.TypeMeta{APIVersion: head.GetAPIVersion(), Kind: strings.TrimSuffix(kind.Kind, "List")}
	for value := range scan.Elements(page) {
		u, _ := carrier(value, of)
		if u == nil {
			return nil
		}
		items = append(items, *u)
	}
	list.Object, list.Items = tree, items
	return &kind
}
