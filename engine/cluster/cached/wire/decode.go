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

	"github.com/handwerk-dev/handwerk/dsl/plain/scan"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

// objects decodes objects and lists of them.
type objects struct {
	runtime.Serializer
	style style
	last  *parts
}

// Decode keeps nothing of data, which belongs to the caller.
func (o objects) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	switch of := into.(type) {
	case nil:
		if o.style.cut != nil && o.last.regular(data) {
			if u, kind := o.carrier(data); u != nil {
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
	if !o.last.regular(data) {
		return nil
	}
	read := scan.Tree
	if o.style.slim {
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

// carrier returns a carrier of a stored object; nil for other regular data.
func (o objects) carrier(data []byte) (*unstructured.Unstructured, *schema.GroupVersionKind) {
	made := o.style.cut(data)
	if made == nil {
		return nil, nil
	}
	u, kind := cached.Carrier(made), made.GroupVersionKind()
	return &u, &kind
}

// nameless reports whether an object has no kind, as in lists of built-in kinds.
func nameless(object []byte) bool {
	for key := range scan.Members(object) {
		if string(key) == "kind" || string(key) == "apiVersion" {
			return false
		}
	}
	return object[0] == '{'
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
	if o.style.cut == nil || !scan.Regular(data) {
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
		if nameless(value) {
			value = named(value, of)
		}
		u, _ := o.carrier(value)
		if u == nil {
			return nil
		}
		items = append(items, *u)
	}
	list.Object, list.Items = tree, items
	return &kind
}
