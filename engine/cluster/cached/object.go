// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package cached defines the objects of a cache: their metadata, and their JSON without managedFields. A tree is
// built from the JSON for each reader, so readers share nothing and need no deep copies. It is pure.
//
// A [Form] says how much of each object is held, and a [Transformer] converts decoded objects.
package cached

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl/plain/scan"
)

// Object is an object in a cache: the metadata for routing and, unless the profile is live, its JSON. It is
// immutable, so several goroutines may read it: the setters of metav1.Object do nothing.
//
// Labels, annotations, finalizers and managedFields are not held separately, but decoded from the JSON each time;
// in the live profile they are missing.
type Object struct {
	immutable
	kind      unique.Handle[typeMeta]
	namespace unique.Handle[string]
	name      string
	uid       types.UID
	// version is the resource version if it is a number, as for API servers; otherwise rare has it.
	version    uint64
	generation int64
	created    seconds
	body       body
	// metadata is the position of the metadata in the JSON.
	metadata struct{ from, to uint32 }
	rare     *rare
}

// rare has the fields that most objects of a cache do not need.
type rare struct {
	version string
	deleted seconds
	owners  []owner
	// owned is the value of the owner label.
	owned string
}

func (o *Object) rarely() rare {
	if o.rare == nil {
		return rare{}
	}
	return *o.rare
}

var (
	_ runtime.Object = (*Object)(nil)
	_ metav1.Object  = (*Object)(nil)
)

// Tree decodes the object. Each call returns a new tree, which belongs to the caller, with numbers as int64 or
// float64. It returns nil if the profile is live: the object must be read from the server.
func (o *Object) Tree() *unstructured.Unstructured {
	var tree map[string]any
	o.body.read(func(json []byte) { tree = scan.Tree(json) })
	if tree == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: tree}
}

// Size is the size of the held JSON in bytes, compressed; zero if the profile is live.
func (o *Object) Size() int { return len(o.body.data) }

// Length is the length of the held JSON in bytes, uncompressed; zero if the profile is live.
func (o *Object) Length() int { return o.body.length() }

// Equal reports whether two objects have the same held content.
func (o *Object) Equal(other *Object) (same bool) {
	if o.uid != other.uid || o.GetResourceVersion() != other.GetResourceVersion() || o.generation != other.generation {
		return false
	}
	o.body.read(func(is []byte) {
		other.body.read(func(was []byte) { same = bytes.Equal(is, was) })
	})
	return same
}

// GetNamespace returns the namespace; empty for cluster-scoped objects.
func (o *Object) GetNamespace() string { return o.namespace.Value() }

// GetName returns the name.
func (o *Object) GetName() string { return o.name }

// GetUID returns the uid.
func (o *Object) GetUID() types.UID { return o.uid }

// GetResourceVersion returns the resource version.
func (o *Object) GetResourceVersion() string {
	if o.version == 0 {
		return o.rarely().version
	}
	return strconv.FormatUint(o.version, 10)
}

// GetGeneration returns the generation.
func (o *Object) GetGeneration() int64 { return o.generation }

// GetCreationTimestamp returns when the object was created.
func (o *Object) GetCreationTimestamp() metav1.Time { return o.created.time() }

// GetDeletionTimestamp returns the deletion timestamp, or nil.
func (o *Object) GetDeletionTimestamp() *metav1.Time {
	if o.rare == nil || o.rare.deleted == 0 {
		return nil
	}
	at := o.rare.deleted.time()
	return &at
}

// GetOwnerReferences returns the owner references. The slice is the caller's.
func (o *Object) GetOwnerReferences() []metav1.OwnerReference {
	var refs []metav1.OwnerReference
	for _, w := range o.rarely().owners {
		refs = append(refs, w.reference())
	}
	return refs
}

// GetLabels decodes the labels.
func (o *Object) GetLabels() map[string]string {
	return o.texts("labels")
}

// Owned returns the value of the owner label, Form.Owner; empty if there is none. Unlike GetLabels, it decodes
// nothing.
func (o *Object) Owned() string { return o.rarely().owned }

// GetAnnotations decodes the annotations.
func (o *Object) GetAnnotations() map[string]string { return o.texts("annotations") }

// Annotation decodes one annotation, which is cheaper than all of them.
func (o *Object) Annotation(key string) (out string) {
	o.read(func(metadata []byte) {
		for k, value := range scan.Members(scan.Member(metadata, "annotations")) {
			if scan.Key(k) == key {
				out = scan.Text(value)
			}
		}
	})
	return out
}

// GetFinalizers decodes the finalizers.
func (o *Object) GetFinalizers() []string { return o.decoded().Finalizers }

// GetManagedFields decodes the managedFields entries that are held; see [Form].
func (o *Object) GetManagedFields() []metav1.ManagedFieldsEntry { return o.decoded().ManagedFields }

// GroupVersionKind returns the kind. Form.Kind says when it is unknown.
func (o *Object) GroupVersionKind() schema.GroupVersionKind {
	kind := o.kind.Value()
	return schema.FromAPIVersionAndKind(kind.apiVersion, kind.kind)
}

// Named returns an object with nothing but a name.
func Named(namespace, name string) *Object {
	return &Object{kind: unique.Make(typeMeta{}), namespace: unique.Make(namespace), name: name}
}

// read calls use with the metadata's JSON; empty if it is not held.
func (o *Object) read(use func(metadata []byte)) {
	o.body.read(func(json []byte) { use(json[o.metadata.from:o.metadata.to]) })
}

// texts decodes a map of strings in the metadata, or nil.
func (o *Object) texts(of string) (out map[string]string) {
	o.read(func(metadata []byte) {
		for key, value := range scan.Members(scan.Member(metadata, of)) {
			if out == nil {
				out = map[string]string{}
			}
			out[scan.Key(key)] = scan.Text(value)
		}
	})
	return out
}

// decoded returns the metadata as far as it is held. Fields of a wrong type are missing, as in an Unstructured.
func (o *Object) decoded() (held metav1.ObjectMeta) {
	if o.metadata.to > 0 {
		o.read(func(metadata []byte) { _ = json.Unmarshal(metadata, &held) })
	}
	return held
}

// typeMeta is shared by all objects of a kind.
type typeMeta struct{ apiVersion, kind string }

// seconds is a time since the epoch; Kubernetes has no finer times in metadata. Zero means no time.
type seconds int64

func (s seconds) time() metav1.Time {
	if s == 0 {
		return metav1.Time{}
	}
	return metav1.Unix(int64(s), 0)
}

// owner is an owner reference. Many owners share a kind.
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

// Controller returns the uid of the controlling owner; empty if there is none.
func (o *Object) Controller() types.UID {
	for _, w := range o.rarely().owners {
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
