// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package actions_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
)

func nothing(context.Context, *dsl.Request) error { return nil }

func TestRegistry(t *testing.T) {
	r := actions.NewRegistry()
	r.Func("a.B", nothing)
	r.Func("a.A", nothing)
	if diff := cmp.Diff([]string{"a.A", "a.B"}, r.Functions()); diff != "" || r.Err() != nil {
		t.Errorf("functions: %s, %v", diff, r.Err())
	}
	r.Func("a.A", nothing)
	r.Action(actions.Action{Name: "x"})
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "a.A: the name is taken") || !strings.Contains(err.Error(), "are required") {
		t.Errorf("Err() = %v", err)
	}
}
