// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Preserves is the extension of schemas in which any field is kept.
const Preserves = "x-kubernetes-preserve-unknown-fields"

// ConditionsLack says what the schema of an object lacks to keep conditions: it is empty if status.conditions is a list whose items have
// a type, a status and a reason, or if any field is kept.
func ConditionsLack(self *spec.Schema) string {
	status, found := self.Properties["status"]
	if open(self) || found && open(&status) {
		return ""
	}
	list, found := status.Properties["conditions"]
	switch {
	case !found:
		return "the schema has no status.conditions"
	case open(&list) || list.Items == nil || list.Items.Schema == nil || open(list.Items.Schema):
		return ""
	}
	var lacks []string
	for _, field := range []string{"type", "status", "reason"} {
		if _, found := list.Items.Schema.Properties[field]; !found {
			lacks = append(lacks, field)
		}
	}
	if len(lacks) == 0 {
		return ""
	}
	return "the schema's status.conditions have no " + strings.Join(lacks, " and no ")
}

// open reports whether a schema keeps fields that it does not name.
func open(s *spec.Schema) bool {
	keeps, _ := s.Extensions.GetBool(Preserves)
	return keeps || s.AdditionalProperties != nil
}
