// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl/source"
)

// TestFaultsAreBounded holds that a configuration with many faults, or with long ids, does not flood a terminal.
func TestFaultsAreBounded(t *testing.T) {
	long := strings.Repeat("é", 100_000)
	one := source.Fault{File: "op.yaml", Line: 1, Column: 2, Path: "resources[0]." + long, Message: "handler " + long + " is declared twice: give each an id"}
	list := source.Faults(slices.Repeat([]source.Fault{one}, 12_345))
	shown := list.Shown()
	if n := len(shown); n != 101 || shown[100].Error() != "and 12245 more" {
		t.Errorf("%d are shown, the last is %v", n, shown[n-1])
	}
	if text := list.Error(); len(text) > 100*2000 || !strings.HasSuffix(shown[0].Message, "… is declared twice: give each an id") {
		t.Errorf("%d bytes, the first is %s", len(text), shown[0].Message)
	}
	if short := list[:100].Shown(); len(short) != 100 {
		t.Errorf("of a hundred, %d are shown", len(short))
	}
	plain := source.Fault{Message: "as it is"}
	if got := (source.Faults{plain}).Shown(); got[0] != plain {
		t.Errorf("a short one is %v", got)
	}
}
