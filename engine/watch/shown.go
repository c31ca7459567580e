// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Shown returns an object that came from the server as a cache of this source shows it. Values are
// shared with it.
func (s Source) Shown(o *unstructured.Unstructured) *unstructured.Unstructured {
	keep, err := parseKeep(s.Keep)
	if s.Profile == dsl.CacheMetadata {
		keep = projection{"apiVersion": nil, "kind": nil, "metadata": nil}
	}
	if err != nil || len(keep) == 0 {
		return o
	}
	return &unstructured.Unstructured{Object: keep.of(o.Object)}
}

// of returns what is kept of a map.
func (p projection) of(tree map[string]any) map[string]any {
	out := make(map[string]any, len(tree))
	for key, value := range tree {
		below, kept := p.below(key, value)
		if !kept {
			continue
		}
		if sub, isMap := value.(map[string]any); isMap && len(below) > 0 {
			value = below.of(sub)
		}
		out[key] = value
	}
	return out
}
