// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	slash "path"
	"strings"
)

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
