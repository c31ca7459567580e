// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package logmark_test

import (
	"testing"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
)

// TestUnnamed holds which texts about an object a and an object b are the same.
func TestUnnamed(t *testing.T) {
	tests := map[string]struct {
		a, b string
		same bool
	}{
		"no name":                          {"it is invalid", "it is invalid", true},
		"a name":                           {"Deployment shop/a is invalid", "Deployment shop/b is invalid", true},
		"a name at the ends":               {"a is not a", "b is not b", true},
		"a name with an ending, quoted":    {`"a-config" is invalid`, `"b-config" is invalid`, true},
		"something else":                   {"shop/a is invalid", "shop/b is too large", false},
		"letters of other words":           {"bad", "bbd", false},
		"letters of other words with ends": {"an a", "an b", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if a, b := logmark.Unnamed(tt.a, "a"), logmark.Unnamed(tt.b, "b"); (a == b) != tt.same {
				t.Errorf("they are %q and %q, want the same: %v", a, b, tt.same)
			}
		})
	}
	if got := logmark.Unnamed("as it is", ""); got != "as it is" {
		t.Errorf("without a name it is %q", got)
	}
}
