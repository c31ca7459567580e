// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plain_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// Ring embeds a pointer to itself, which encoding/json allows.
type Ring struct {
	*Ring
	Size int `json:"size"`
}

// TestAStructMayEmbedItself holds that a struct which embeds itself is walked once.
func TestAStructMayEmbedItself(t *testing.T) {
	all := func([]string) (lacks, part bool) { return true, false }
	if diff := cmp.Diff([][]string{{"size"}}, plain.Outside(reflect.TypeFor[Ring](), all)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	before, after := map[string]any{}, map[string]any{"size": int64(1)}
	plain.Fill(before, after, reflect.TypeFor[Ring]())
	if len(before) > 0 {
		t.Errorf("before has become %v", before)
	}
}
