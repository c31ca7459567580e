// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestFiltersOnlyRead holds that children without the time of a handler refuse every write.
func TestFiltersOnlyRead(t *testing.T) {
	c := &children{}
	_, applied := c.Apply(t.Context(), nil)
	for name, err := range map[string]error{
		"apply": applied, "delete": c.Delete(t.Context(), "configmaps.v1", "c"), "remove": c.Remove(t.Context(), dsl.ChildObject{}),
	} {
		if err == nil {
			t.Errorf("%s is not refused", name)
		}
	}
	ctx, done := c.read(t.Context())
	defer done()
	if ctx.Err() != nil {
		t.Error("a read is refused")
	}
}
