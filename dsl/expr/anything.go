// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// anything is an empty map in which every key is found, and is the same again. With it in the place of
// something, an evaluation tells whether it misses something else; see Scope.Anything.
type anything struct{ traits.Mapper }

func newAnything() anything {
	return anything{types.NewStringInterfaceMap(types.DefaultTypeAdapter, map[string]any{})}
}

// Find finds everything.
func (a anything) Find(ref.Val) (ref.Val, bool) { return a, true }

// Get gets everything.
func (a anything) Get(ref.Val) ref.Val { return a }

// Contains says yes.
func (anything) Contains(ref.Val) ref.Val { return types.True }

// Equal says no.
func (anything) Equal(ref.Val) ref.Val { return types.False }
