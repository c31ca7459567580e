// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"bytes"
	"hash/fnv"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// owner is an owner reference. Most owners have the kind of many others.
type owner struct {
	kind              unique.Handle[typeMeta]
	name              string
	uid               types.UID
	controller, block bool
}

func ownersOf(refs []metav1.OwnerReference) []owner {
	if len(refs) == 0 {
		return nil
	}
	owners := make([]owner, 0, len(refs))
	for _, ref := range refs {
		owners = append(owners, owner{
			kind:       unique.Make(typeMeta{ref.APIVersion, ref.Kind}),
			name:       ref.Name,
			uid:        ref.UID,
			controller: ref.Controller != nil && *ref.Controller,
			block:      ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion,
		})
	}
	return owners
}

func ownersIn(refs []any) []owner {
	if len(refs) == 0 {
		return nil
	}
	owners := make([]owner, 0, len(refs))
	for _, ref := range refs {
		m, _ := ref.(map[string]any)
		o := owner{
			kind: unique.Make(typeMeta{text(m, "apiVersion"), text(m, "kind")}),
			name: text(m, "name"),
			uid:  types.UID(text(m, "uid")),
		}
		o.controller, _ = m["controller"].(bool)
		o.block, _ = m["blockOwnerDeletion"].(bool)
		owners = append(owners, o)
	}
	return owners
}

func (w owner) reference() metav1.OwnerReference {
	kind := w.kind.Value()
	return metav1.OwnerReference{
		APIVersion: kind.apiVersion, Kind: kind.kind, Name: w.name, UID: w.uid,
		Controller: &w.controller, BlockOwnerDeletion: &w.block,
	}
}

// controllerOf returns the uid of the owner that controls the object, empty when there is none.
func controllerOf(o *Object) types.UID {
	for _, w := range o.owners {
		if w.controller {
			return w.uid
		}
	}
	return ""
}

// Label returns the value of a label, empty when there is none. Unlike GetLabels it costs next to
// nothing where the key does not occur in the object's metadata.
func (o *Object) Label(key string) string {
	if key == "" || !bytes.Contains(o.raw[o.metadata.from:o.metadata.to], []byte(`"`+key+`"`)) {
		return ""
	}
	return o.GetLabels()[key]
}

// byOwner is the index of objects by the uid of the owner that controls them and by the value of
// the label that names their owner, or rather by the buckets that these fall into. The index has a
// map for each of its values, and most owners have one or two objects of a kind: a map each would
// cost as much as everything else that is kept beside the object's bytes. Whoever reads a bucket
// picks what has the right one.
const byOwner = "owner"

// buckets bounds the objects that are looked at in vain: a thousandth of all.
const buckets = 1 << 10

// ownerBuckets indexes objects; label is the key of the owner label, empty when there is none.
func ownerBuckets(label string) cache.IndexFunc {
	return func(obj any) ([]string, error) {
		o, ok := obj.(*Object)
		if !ok {
			return nil, nil
		}
		var in []string
		if uid := controllerOf(o); uid != "" {
			in = append(in, bucketOf(string(uid)))
		}
		if named := o.Label(label); named != "" {
			in = append(in, bucketOf(named))
		}
		return in, nil
	}
}

func bucketOf(owner string) string {
	hash := fnv.New32a()
	hash.Write([]byte(owner))
	n := hash.Sum32() % buckets
	return string([]byte{byte(n >> 8), byte(n)})
}

// ownedBy returns the objects that the owner controls and those with its label, in no order.
func ownedBy(index cache.Indexer, owner, label string) []*Object {
	if owner == "" {
		return nil
	}
	items, err := index.ByIndex(byOwner, bucketOf(owner))
	if err != nil {
		return nil // not reached: the index is there from the start
	}
	var owned []*Object
	for _, item := range items {
		if o, ok := item.(*Object); ok && (string(controllerOf(o)) == owner || o.Label(label) == owner) {
			owned = append(owned, o)
		}
	}
	return owned
}
