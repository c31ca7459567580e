// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/dsl/plain/scan"
)

// Digest returns a digest of what is held of the object, but for managedFields, for the life of the process. No tree is built. It is zero
// in the profile live.
func (o *Object) Digest() (sum uint64) {
	o.body.read(func(json []byte) {
		if len(json) == 0 {
			return
		}
		members := 0
		for key, value := range scan.Members(json) {
			var except func(key []byte) bool
			if string(key) == "metadata" {
				except = isManagedFields
			}
			members, sum = members+1, sum+plain.HashMember(key, scan.Hash(value, except))
		}
		sum = plain.HashMap(members, sum)
	})
	return sum
}

func isManagedFields(key []byte) bool { return string(key) == "managedFields" }

// DigestOf returns the digest of an object as a cache holds it, from its tree; see [Form.Shows].
func DigestOf(o *unstructured.Unstructured) uint64 {
	tree := o.Object
	if metadata, is := tree["metadata"].(map[string]any); is && metadata["managedFields"] != nil {
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields")
		tree = maps.Clone(tree)
		tree["metadata"] = metadata
	}
	sum, err := plain.Hash(tree)
	if err != nil {
		return 0
	}
	return sum
}
