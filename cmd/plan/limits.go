// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// unlimited lets all deletions happen in the twin. The plan says which of them a limit would hold.
var unlimited = dsl.Limits{Deletions: dsl.DeletionLimits{PerMinute: dsl.Unlimited, Share: dsl.Unlimited}}

// strictest returns the limits of an operator's resources with the smallest share.
func strictest(op *dsl.Operator) dsl.DeletionLimits {
	out := op.Settings.Limits.Deletions.WithDefaults()
	for _, r := range op.Resources() {
		if r.Limits == nil {
			continue
		}
		if own := r.Limits.Deletions.WithDefaults(); out.Share == dsl.Unlimited || own.Share != dsl.Unlimited && own.Share < out.Share {
			out = own
		}
	}
	return out
}

// countChildren counts the children of an operator by kind.
func countChildren(op *dsl.Operator, objects []*unstructured.Unstructured) map[string]int {
	out := map[string]int{}
	for _, o := range objects {
		if o.GetAnnotations()[op.ChildAnnotation()] != "" {
			out[o.GetKind()]++
		}
	}
	return out
}

// held returns a warning for each kind of whose objects the operator would delete more than a limit allows. All counts
// the children before, by kind.
func (r *recorder) held(limit dsl.DeletionLimits, all map[string]int) (warnings []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	deleted := map[string]int{}
	for needs, places := range r.rights {
		if needs.verb != "delete" || needs.subresource != "" {
			continue
		}
		for at := range places {
			var before struct{ Kind string }
			if err := json.Unmarshal(r.touched[at].before, &before); err == nil {
				deleted[before.Kind]++
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(deleted)) {
		if n := deleted[kind]; !limit.Within(n, all[kind]) {
			warnings = append(warnings, fmt.Sprintf("the operator deletes %d of %d %s objects, more than limits.deletions.share allows (%d%%): it would hold the deletions until operator release", n, all[kind], kind, limit.Share))
		}
	}
	return warnings
}
