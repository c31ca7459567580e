// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl/expr/manual"
)

// TestEveryExampleOfAFunctionGivesItsResult evaluates the examples that people read, as they would.
func TestEveryExampleOfAFunctionGivesItsResult(t *testing.T) {
	b := newBench(t)
	for _, group := range manual.Groups() {
		for _, f := range group.Functions {
			b.out, b.err = buffer{}, buffer{}
			code := b.execute(t.Context(), []string{"eval", f.Example, "-o", "json"})
			if code != exitOK {
				t.Errorf("%s: %s: exit code %d: %s", group.Title, f.Example, code, b.err.String())
				continue
			}
			var got bytes.Buffer
			if err := json.Compact(&got, []byte(b.out.String())); err != nil {
				t.Errorf("%s: %v", f.Example, err)
			}
			if got.String() != f.Result {
				t.Errorf("%s: %s gives %s, and is said to give %s", group.Title, f.Example, got.String(), f.Result)
			}
			if strings.Contains(f.Example, "'") {
				t.Errorf("%s has a quote that ends what stands between quotes in a shell", f.Example)
			}
		}
	}
}
