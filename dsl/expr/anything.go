// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// anything is a map in which every key is found, and is the same again. With it in the place of
// something, an evaluation tells whether it misses something else; see Scope.Anything.
type anything struct{}

var _ traits.Mapper = anything{}

// Find finds everything.
func (a anything) Find(ref.Val) (ref.Val, bool) { return a, true }

// Get gets everything.
func (a anything) Get(ref.Val) ref.Val { return a }

// Contains says yes.
func (anything) Contains(ref.Val) ref.Val { return types.True }

// Size is that of an empty map, as there is nothing to go through.
func (anything) Size() ref.Val { return types.IntZero }

// Iterator goes through nothing.
func (anything) Iterator() traits.Iterator {
	return types.NewDynamicMap(types.DefaultTypeAdapter, map[string]any{}).Iterator()
}

// Equal says no.
func (anything) Equal(ref.Val) ref.Val { return types.False }

// Type is that of maps.
func (anything) Type() ref.Type { return types.MapType }

// Value is that of an empty map.
func (anything) Value() any { return map[string]any{} }

// ConvertToType fails.
func (anything) ConvertToType(to ref.Type) ref.Val {
	return types.NewErr("cannot be converted to %s", to.TypeName())
}

// ConvertToNative fails.
func (anything) ConvertToNative(to reflect.Type) (any, error) {
	return nil, fmt.Errorf("cannot be converted to %s", to)
}
