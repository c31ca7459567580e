// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/engine/ops"
	"github.com/handwerk-dev/handwerk/engine/rights"
)

// asks reports whether the feed asks for a right, and tells when it is missing.
func (f *feed) asks(r rights.Rule) bool {
	verb := r.Verb
	if r.Subresource != "" {
		verb += " " + r.Subresource
	}
	served := f.resource()
	if !f.isKnown() || served.GVR.Group != r.Group || served.GVR.Resource != r.Resource || !slices.Contains(f.verbs(), verb) {
		return false
	}
	names, _ := f.scope.names(served.Namespaced)
	return r.Namespace == "" || slices.Contains(names, r.Namespace)
}

// countMissing counts the rights that the feed lacks, by namespace. Feeds of the same resource lack the
// same.
func (f *feed) countMissing(counts map[ops.MissingRight]int) {
	resource := f.resource().GVR.GroupResource().String()
	f.mu.Lock()
	defer f.mu.Unlock()
	mine := map[ops.MissingRight]int{}
	for _, h := range f.hindrances {
		for _, text := range h.missing {
			verb, subresource, found := strings.Cut(text, " ")
			one := ops.MissingRight{Resource: resource, Verb: verb}
			if found {
				one.Resource += "/" + subresource
			}
			mine[one]++
		}
	}
	for one, n := range mine {
		counts[one] = max(counts[one], n)
	}
}

// lacksRights reports whether a right is missing to the feed, which its check says.
func (f *feed) lacksRights() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.hindrances {
		if len(h.missing) > 0 {
			return true
		}
	}
	return false
}
