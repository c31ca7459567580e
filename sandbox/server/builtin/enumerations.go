// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"strings"
	"sync"

	openapispec "k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl/builtin"
)

// enumerations know the fields that have one of some values, for OpenAPI documents: the Go types do not say it. They
// are read when the first document is made.
type enumerations struct {
	mu   sync.Mutex
	kept *builtin.Kubernetes
}

// describe adds the values of enumerations to the fields of a schema with this name.
func (e *enumerations) describe(name string, s *openapispec.Schema) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.kept == nil {
		kept, err := builtin.Open()
		if err != nil {
			panic("builtin: " + err.Error()) // not reached: the archive is a part of the program
		}
		e.kept = kept
	}
	known := e.kept.Enumerations(name)
	if known == nil {
		return
	}
	for field, property := range s.Properties {
		if from, found := known.Properties[field]; found {
			enumerate(&property, &from)
			s.Properties[field] = property
		}
	}
}

// enumerate adds the values of an enumeration to a field, or to its elements.
func enumerate(to, from *openapispec.Schema) {
	to.Enum = from.Enum
	if from.Description != "" {
		to.Description = strings.TrimPrefix(to.Description+"\n\n"+from.Description, "\n\n")
	}
	if to.Items != nil && from.Items != nil {
		enumerate(to.Items.Schema, from.Items.Schema)
	}
}
