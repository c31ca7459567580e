// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/handwerk-dev/handwerk/dsl"
)

// none is the type of None.
type none struct{}

// None is the value of an absent optional. A template leaves out entries with this value.
var None any = none{}

// plainValue converts a value of CEL to a plain JSON value, within the room.
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
	case types.Bool, types.String, types.Int:
		return v.Value(), nil
	case types.Uint:
		if uint64(v) > math.MaxInt64 {
			return nil, fmt.Errorf("the number %d is too large", uint64(v))
		}
		return int64(v), nil
	case types.Double:
		f := float64(v)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("the number %v cannot be written", f)
		}
		return f, nil
	// JSON has no kind for the following types.
	case types.Bytes:
		return base64.StdEncoding.EncodeToString(v), nil
	case types.Timestamp:
		return v.UTC().Format(time.RFC3339Nano), nil
	case types.Duration:
		return v.String(), nil
	}
	if text, ok := v.Value().(fmt.Stringer); ok { // quantities, URLs, addresses and versions
		return text.String(), nil
	}
	return nil, fmt.Errorf("the result is %s, which cannot be written", named(v.Type().TypeName()))
}

func plainMap(m traits.Mapper, room *Room) (any, error) {
	if tree, is := m.Value().(map[string]any); is {
		return copied(tree, room)
	}
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
	if list, is := l.Value().([]any); is {
		return copied(list, room)
	}
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

// copied copies values that are plain already: parts of objects, or parameters. Most values are.
func copied(value any, room *Room) (any, error) {
	text, _ := value.(string)
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, element := range value {
			if err := room.value(key); err != nil {
				return nil, err
			}
			element, err := copied(element, room)
			if err != nil {
				return nil, err
			}
			if element != None {
				out[key] = element
			}
		}
		return out, room.value("")
	case []any:
		out := make([]any, 0, len(value))
		for _, element := range value {
			element, err := copied(element, room)
			if err != nil {
				return nil, err
			}
			if element != None {
				out = append(out, element)
			}
		}
		return out, room.value("")
	case nil, bool, int64, string:
		return value, room.value(text)
	default:
		return plainValue(types.DefaultTypeAdapter.NativeToValue(value), room)
	}
}

// The limits for results of expressions, in bytes as [Room] counts them.
const (
	// MostOfAnObject is etcd's default limit for a request (--max-request-bytes). Objects cannot be larger.
	MostOfAnObject = 3 << 19
	// mostRendered is the limit if a [Scope] has no Room: for an expression, or for a template with all its
	// expressions.
	mostRendered = 32 << 20
)

// ErrTooLarge is wrapped by the errors of evaluations whose result exceeds the room. They are permanent: the result
// changes only when something changes that the expression reads.
var ErrTooLarge = errors.New("it is too large")

// Room limits the results of expressions and templates while they are computed, because a short expression can
// repeat an object a thousand times. It counts the bytes of texts and keys, and two for each value, which is about
// the least that they need as JSON. It is not safe for use by several goroutines.
type Room struct{ limit, left int }

// NewRoom returns a room of that many bytes.
func NewRoom(limit int) *Room { return &Room{limit, limit} }

// Used returns how many bytes were counted.
func (r *Room) Used() int { return r.limit - r.left }

// value counts a value; text is the part of it with a size.
func (r *Room) value(text string) error {
	if r.left -= len(text) + 2; r.left < 0 {
		limit := strings.TrimSuffix(fmt.Sprintf("%.1f", float64(r.limit)/(1<<20)), ".0")
		return dsl.Permanent(&causedError{fmt.Errorf("it gives more than %s MiB", limit), ErrTooLarge})
	}
	return nil
}
