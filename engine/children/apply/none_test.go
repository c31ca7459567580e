// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestWithoutAnOwnerThereAreNoChildren holds that a handler which has no object can neither read nor write children.
func TestWithoutAnOwnerThereAreNoChildren(t *testing.T) {
	why := errors.New("there is no object")
	c := NoChildren(why)
	_, missed := c.Missed()
	_, _, stale := c.Stale(t.Context(), nil, dsl.ChildSpec{})
	_, all := c.All()
	_, got := c.Get("configmaps.v1", "c")
	_, listed := c.List("configmaps.v1")
	_, applied := c.Apply(t.Context(), nil)
	for call, err := range map[string]error{
		"missed": missed, "stale": stale, "all": all, "get": got, "list": listed, "apply": applied, "enter": c.Enter(t.Context()),
		"delete": c.Delete(t.Context(), "configmaps.v1", "c"), "remove": c.Remove(t.Context(), dsl.ChildObject{}),
	} {
		if !errors.Is(err, why) || !dsl.IsPermanent(err) {
			t.Errorf("%s: the error is %v", call, err)
		}
	}
}
