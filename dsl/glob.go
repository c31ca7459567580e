// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"fmt"
	slash "path"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// wrongNamespace says what is wrong with a namespace or a glob of some, as in team-* or !team-old; it is
// empty when nothing is.
func wrongNamespace(pattern string) string {
	const want = "want a namespace or a glob such as team-*: "
	name := strings.TrimPrefix(pattern, "!")
	if strings.ContainsAny(name, `*?[\`) {
		if fault := badGlob(name); fault != "" {
			return want + fault
		}
		return ""
	}
	if faults := validation.IsDNS1123Label(name); len(faults) > 0 {
		return want + faults[0]
	}
	return ""
}

// badGlob says what is wrong with a glob of names, nothing when it is sound. A glob that can
// match no name is not.
func badGlob(glob string) string {
	if _, err := slash.Match(glob, ""); err != nil {
		return "the glob has a bracket or a backslash without its other half"
	}
	for _, r := range glob {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune(`-*?[]^\`, r) {
			continue
		}
		return fmt.Sprintf("no name has %q in it", r)
	}
	return ""
}
