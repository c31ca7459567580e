// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"encoding/base64"
	"fmt"
	"math"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// none is the type of None.
type none struct{}

// None is the value of an optional that is not there. A template leaves out what has it.
var None any = none{}

// plainValue turns a value of CEL into one that JSON can hold, as far as there is room for it.
func plainValue(v ref.Val, room *Room) (any, error) {
	switch v := v.(type) {
	case *types.Optional:
		if !v.HasValue() {
			return None, nil
		}
		return plainValue(v.GetValue(), room)
	case traits.Mapper:
		return plainMap(v, room)
	case traits.Lister:
		return plainList(v, room)
	}
	out, err := plainScalar(v)
	if err != nil {
		return nil, err
	}
	text, _ := out.(string)
	return out, room.value(text)
}

func plainScalar(v ref.Val) (any, error) {
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(v), nil
	case types.String:
		return string(v), nil
	case types.Int, types.Uint, types.Double:
		return plainNumber(v)
	}
	if text, ok := asText(v); ok {
		return text, nil
	}
	return nil, fmt.Errorf("the result is %s, which cannot be written", named(v.Type().TypeName()))
}

func plainNumber(v ref.Val) (any, error) {
	switch v := v.(type) {
	case types.Uint:
		if uint64(v) > math.MaxInt64 {
			return nil, fmt.Errorf("the number %d is too large", uint64(v))
		}
		return int64(v), nil
	case types.Double:
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("the number %v cannot be written", f)
		}
		return float64(v), nil
	default:
		return v.Value(), nil
	}
}

// asText writes what JSON has no kind for.
func asText(v ref.Val) (string, bool) {
	switch v := v.(type) {
	case types.Bytes:
		return base64.StdEncoding.EncodeToString(v), true
	case types.Timestamp:
		return v.UTC().Format(time.RFC3339Nano), true
	case types.Duration:
		return v.String(), true
	}
	text, ok := v.Value().(fmt.Stringer) // quantities, URLs, addresses and versions
	if !ok {
		return "", false
	}
	return text.String(), true
}

func plainMap(m traits.Mapper, room *Room) (any, error) {
	if err := room.value(""); err != nil {
		return nil, err
	}
	out := map[string]any{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, fmt.Errorf("a key of a map is %s, want text", named(key.Type().TypeName()))
		}
		if err := room.value(string(name)); err != nil {
			return nil, err
		}
		element, err := plainValue(m.Get(key), room)
		if err != nil {
			return nil, err
		}
		if element != None {
			out[string(name)] = element
		}
	}
	return out, nil
}

func plainList(l traits.Lister, room *Room) (any, error) {
	if err := room.value(""); err != nil {
		return nil, err
	}
	out := []any{}
	for it := l.Iterator(); it.HasNext() == types.True; {
		element, err := plainValue(it.Next(), room)
		if err != nil {
			return nil, err
		}
		if element != None {
			out = append(out, element)
		}
	}
	return out, nil
}
