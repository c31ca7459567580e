// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"regexp"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Unchecked is the CRD that Build makes, as it is before it is checked.
func Unchecked(name dsl.ResourceName, s *Schema) (map[string]any, error) {
	b := &builder{form: s, places: map[string]place{}}
	root := b.root()
	return inJSON(definition(name, s, root, b.columns(root)))
}

// DurationPattern is that of text for metav1.Duration.
var DurationPattern = regexp.MustCompile(durationPattern)
