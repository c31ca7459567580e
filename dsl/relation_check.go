// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// checkRelations reports relations that cannot be.
func (r *Resource) checkRelations(c check) {
	first := map[string]string{}
	for i, relation := range r.relations {
		at := fmt.Sprintf("related[%d].", i)
		if !celName.MatchString(relation.Name) {
			c.fault(at+"name", "want letters, digits and '_', as expressions use it, found %q", relation.Name)
		} else if earlier, twice := first[relation.Name]; twice {
			c.note(Fault{First: &Place{Resource: r, Field: earlier}}, at+"name", "the name is used twice")
		} else {
			first[relation.Name] = at + "name"
		}
		if relation.Resource.Resource == "" {
			c.fault(at+"resource", "it has no resource")
		}
		for _, name := range relation.After {
			if !slices.ContainsFunc(r.relations[:i], func(other Relation) bool { return other.Name == name }) {
				c.fault(strings.TrimSuffix(at, "."), "it reads related.%s, which is not declared before it", name)
			}
		}
		if wrong := validation.IsDNS1123Label(relation.Namespace); relation.Namespace != "" && len(wrong) > 0 {
			c.fault(at+"namespace", "%q is no name of a namespace", relation.Namespace)
		}
		if _, err := labels.Parse(relation.LabelSelector); err != nil {
			c.fault(at+"selector", "want a label selector: %w", err)
		}
	}
}
