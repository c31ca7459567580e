// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
)

// lacking returns a warning for each right that the operator's writes needed, and that operator rbac does not print: a new version may
// have to delete what an earlier one made, or take a finalizer off. The operator installs its CRDs with rights of their own.
func (r *recorder) lacking(rules []rbac.Rule) (warnings []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for needs, at := range r.rights {
		of := needs.resource
		if of.Group == crdGroup || rbac.Has(rules, of.Group, of.Resource, needs.subresource, needs.verb) {
			continue
		}
		name := strings.TrimSuffix(of.Resource+"/"+needs.subresource, "/")
		if of.Group != "" {
			name += "." + of.Group
		}
		warnings = append(warnings, fmt.Sprintf("the roles of operator rbac do not let the operator %s %s, as for %s: with them alone, this does not happen", needs.verb, name, objects(len(at))))
	}
	slices.Sort(warnings)
	return warnings
}
