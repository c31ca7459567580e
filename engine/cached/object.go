// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package cached says what an object in a cache is. An [Object] has the metadata that routing needs and
// the object's JSON without managedFields. A tree is built from the bytes each time it is asked for, so
// nobody shares one and nothing is copied deeply.
//
// A [Form] says how much of each object is held, and [NewTransform] makes objects of what clients decode.
package cached

import (
	"bytes"
	"encoding/json"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/engine/scan"
)

// Object is an object as a cache holds it: the metadata that routing needs and, unless the
// profile is live, its JSON. It never changes, so it may be read by any number of goroutines: the
// setters that metav1.Object asks for do nothing.
//
// Labels, annotations, finalizers and managedFields are not held but decoded from the JSON each
// time; in the live profile there are none.
type Object struct {
	immutable
	kind       unique.Handle[typeMeta]
	namespace  unique.Handle[string]
	name       string
	uid        types.UID
	version    string
	generation int64
	created    seconds
	deleted    seconds
	owners     []owner
	raw        []byte
	// metadata is where the value of the key metadata lies in raw.
	metadata struct{ from, to uint32 }
}

var (
	_ runtime.Object = (*Object)(nil)
	_ metav1.Object  = (*Object)(nil)
)

// Tree decodes the object. The tree is the caller's own: a new one each time, with numbers as
// int64 or float64. It is nil when the profile is live: the object must be read from the server.
func (o *Object) Tree() *unstructured.Unstructured {
	if len(o.raw) == 0 {
		return nil
	}
	return &unstructured.Unstructured{Object: scan.Tree(o.raw)}
}

// Size is the length of the object's JSON in bytes, zero when the profile is live.
func (o *Object) Size() int { return len(o.raw) }

// GetNamespace returns the namespace, empty for objects without one.
func (o *Object) GetNamespace() string { return o.namespace.Value() }

// GetName returns the name.
func (o *Object) GetName() string { return o.name }

// GetUID returns the uid.
func (o *Object) GetUID() types.UID { return o.uid }

// GetResourceVersion returns the resource version.
func (o *Object) GetResourceVersion() string { return o.version }

// GetGeneration returns the generation.
func (o *Object) GetGeneration() int64 { return o.generation }

// GetCreationTimestamp returns when the object was created.
func (o *Object) GetCreationTimestamp() metav1.Time { return o.created.time() }

// GetDeletionTimestamp returns since when the object is to be deleted, nil when it is not.
func (o *Object) GetDeletionTimestamp() *metav1.Time {
	if o.deleted == 0 {
		return nil
	}
	at := o.deleted.time()
	return &at
}

// GetOwnerReferences returns the owner references. The slice is the caller's.
func (o *Object) GetOwnerReferences() []metav1.OwnerReference {
	var refs []metav1.OwnerReference
	for _, w := range o.owners {
		refs = append(refs, w.reference())
	}
	return refs
}

// GetLabels decodes the labels.
func (o *Object) GetLabels() map[string]string {
	return o.texts("labels")
}

// Label returns the value of a label, empty when there is none. Unlike GetLabels it costs next to
// nothing where the key does not occur in the object's metadata.
func (o *Object) Label(key string) string {
	if key == "" || !bytes.Contains(o.held(), []byte(`"`+key+`"`)) {
		return ""
	}
	return scan.Text(scan.Member(scan.Member(o.held(), "labels"), key))
}

// GetAnnotations decodes the annotations.
func (o *Object) GetAnnotations() map[string]string { return o.texts("annotations") }

// GetFinalizers decodes the finalizers.
func (o *Object) GetFinalizers() []string { return o.decoded().Finalizers }

// GetManagedFields decodes the managedFields entries that are held; see [Form].
func (o *Object) GetManagedFields() []metav1.ManagedFieldsEntry { return o.decoded().ManagedFields }

// GroupVersionKind returns the kind. See Form.Kind for when it is unknown.
func (o *Object) GroupVersionKind() schema.GroupVersionKind {
	kind := o.kind.Value()
	return schema.FromAPIVersionAndKind(kind.apiVersion, kind.kind)
}

// Named returns an object of which the name is all that is known.
func Named(namespace, name string) *Object {
	return &Object{kind: unique.Make(typeMeta{}), namespace: unique.Make(namespace), name: name}
}

// held is the metadata's JSON, empty where none is held.
func (o *Object) held() []byte { return o.raw[o.metadata.from:o.metadata.to] }

// texts decodes a map of strings in the metadata, nil when there is none.
func (o *Object) texts(of string) map[string]string {
	var out map[string]string
	for key, value := range scan.Members(scan.Member(o.held(), of)) {
		if out == nil {
			out = map[string]string{}
		}
		out[string(key)] = scan.Text(value)
	}
	return out
}

// decoded is the metadata in full, as far as it is held.
func (o *Object) decoded() metav1.ObjectMeta {
	var held metav1.ObjectMeta
	o.decode(&held)
	return held
}

// decode leaves out as it is where nothing is held, or where a field is not what it should be:
// the caller then sees less of the object, as one that asks an Unstructured does.
func (o *Object) decode(out any) {
	if o.metadata.to > 0 {
		_ = json.Unmarshal(o.held(), out)
	}
}

// typeMeta is shared by all objects of a kind.
type typeMeta struct{ apiVersion, kind string }

// seconds is a time since the epoch; Kubernetes has no finer times in metadata. Zero is no time.
type seconds int64

func (s seconds) time() metav1.Time {
	if s == 0 {
		return metav1.Time{}
	}
	return metav1.Unix(int64(s), 0)
}

// owner is an owner reference. Most owners have the kind of many others.
type owner struct {
	kind              unique.Handle[typeMeta]
	name              string
	uid               types.UID
	controller, block bool
}

func (w owner) reference() metav1.OwnerReference {
	kind := w.kind.Value()
	return metav1.OwnerReference{
		APIVersion: kind.apiVersion, Kind: kind.kind, Name: w.name, UID: w.uid,
		Controller: &w.controller, BlockOwnerDeletion: &w.block,
	}
}

// Controller returns the uid of the owner that controls the object, empty when there is none.
func (o *Object) Controller() types.UID {
	for _, w := range o.owners {
		if w.controller {
			return w.uid
		}
	}
	return ""
}

func secondsOf(t time.Time) seconds {
	if t.IsZero() {
		return 0
	}
	return seconds(t.Unix())
}
