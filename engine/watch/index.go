// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"hash/fnv"

	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/cached"
)

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
		o, ok := obj.(*cached.Object)
		if !ok {
			return nil, nil
		}
		var in []string
		if uid := o.Controller(); uid != "" {
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
func ownedBy(index cache.Indexer, owner, label string) []*cached.Object {
	if owner == "" {
		return nil
	}
	items, err := index.ByIndex(byOwner, bucketOf(owner))
	if err != nil {
		return nil // not reached: the index is there from the start
	}
	var owned []*cached.Object
	for _, item := range items {
		if o, ok := item.(*cached.Object); ok && (string(o.Controller()) == owner || o.Label(label) == owner) {
			owned = append(owned, o)
		}
	}
	return owned
}
