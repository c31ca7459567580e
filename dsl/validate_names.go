// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// crdName is a name that may belong to one CRD of a group only. Kinds and the names of resources do not collide.
type crdName struct {
	group, name string
	kind        bool
}

// checkCRDNames reports names that an earlier CRD of the group has. The API server accepts both CRDs, and does not serve
// the second one. Only the first such name of a CRD is reported, because others mostly follow from it.
func (op *Operator) checkCRDNames(found *[]error) {
	taken := map[crdName]*Resource{}
	for _, r := range op.resources {
		reported := r.CRD == nil
		for _, field := range []string{"kind", "listKind", "plural", "singular", "shortNames"} {
			for _, text := range r.crdNames(field) {
				name := crdName{r.Name.Group, text, field == "kind" || field == "listKind"}
				first := taken[name]
				if first == nil {
					taken[name] = r
				}
				if reported || first == nil || first.Name.Objects() == r.Name.Objects() {
					continue
				}
				reported = true
				at := "schema." + field
				if field == "plural" {
					at = "resource"
				}
				check{Place{Resource: r}, found}.fault(at, "%s has the name %s already: a group has each name once", first.Name, text)
			}
		}
	}
}

// crdNames returns the names of one field in the resource's CRD.
func (r *Resource) crdNames(field string) []string {
	if field == "shortNames" {
		several, _, _ := unstructured.NestedStringSlice(r.CRD, "spec", "names", field)
		return several
	}
	if one, _, _ := unstructured.NestedString(r.CRD, "spec", "names", field); one != "" {
		return []string{one}
	}
	return nil
}
