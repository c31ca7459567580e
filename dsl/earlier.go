// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Earlier returns an operator without resources for each name in [Operator.Was], to find its keys on objects, its
// register and its lock under that name. A lock with a name of its own keeps that name.
func (op *Operator) Earlier() (out []*Operator) {
	for _, was := range op.Was {
		earlier := &Operator{Name: was, Domain: op.Domain}
		if name, domain, whole := strings.Cut(was, "."); whole {
			earlier.Name, earlier.Domain = name, domain
		}
		earlier.Settings.LeaderElection = op.Settings.LeaderElection
		out = append(out, earlier)
	}
	return out
}

// checkWas reports earlier names that are invalid, or that the operator still has.
func (op *Operator) checkWas(c check) {
	seen := []string{op.Prefix()}
	for i, earlier := range op.Earlier() {
		field, was := fmt.Sprintf("metadata.was[%d]", i), op.Was[i]
		prefix := earlier.Prefix()
		at := slices.Index(seen, prefix)
		seen = append(seen, prefix)
		before, key, isKey := strings.Cut(was, "/")
		faults := validation.IsDNS1123Label(earlier.Name)
		switch {
		case isKey:
			c.fault(field, "want a name or a prefix without a slash, found %q (did you mean %q, without %q?)", was, before, "/"+key)
		case len(faults) > 0:
			c.fault(field, "want a name that the operator had, as in old-name, or a prefix, as in old-name.example.com, found %q: %s", was, faults[0])
		case len(validation.IsDNS1123Subdomain(prefix)) > 0:
			c.fault(field, "want a prefix that the operator had, as in old-name.example.com, found %q: %s", was, validation.IsDNS1123Subdomain(prefix)[0])
		case at == 0:
			c.fault(field, "%q is the present name of the operator (prefix %s)", was, prefix)
		case at > 0:
			c.fault(field, "the name is given twice")
		}
	}
}
