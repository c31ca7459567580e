// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// shown returns the value of a part for people. If the value may come from a Secret, it says only that.
func (x *recorder) shown(e ast.Expr, v ref.Val) string {
	if x.secret(e) {
		return dsl.Secret
	}
	if answer, is := v.(types.Bool); is {
		return x.answer(e, bool(answer))
	}
	return shown(v)
}

// answer returns the answer of a part. For a ready() that is false it says why.
func (x *recorder) answer(e ast.Expr, holds bool) string {
	out := strconv.FormatBool(holds)
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != "ready" || holds || x.secret(e) {
		return out
	}
	object := e.AsCall().Args()[0]
	why := x.unready[object.ID()]
	if why.Reason == dsl.ReasonNotFound {
		return cut(out+" ("+x.text(object)+" is "+dsl.NotThere+")", longestValue)
	}
	return cut(out+" ("+why.Message+")", longestValue)
}

// shown formats a value in one line of at most longestValue characters. It looks at no more of the value than that
// takes.
func shown(v ref.Val) string {
	b := &brief{left: longestValue}
	b.value(v)
	if !b.full() {
		return b.out.String()
	}
	size := ""
	switch v := v.(type) {
	case traits.Lister:
		size = fmt.Sprintf(" (%d items)", v.Size())
	case traits.Mapper:
		size = fmt.Sprintf(" (%d keys)", v.Size())
	}
	return cut(b.out.String(), longestValue-len(size)) + size
}

// brief writes a value until there is no room left.
type brief struct {
	out  strings.Builder
	left int
}

// full reports whether there is no room left. The last text that was written may be longer than the room.
func (b *brief) full() bool { return b.left < 0 }

func (b *brief) write(text string) {
	if !b.full() {
		b.out.WriteString(text)
		b.left -= utf8.RuneCountInString(text)
	}
}

// value writes a value.
func (b *brief) value(v ref.Val) {
	switch v := v.(type) {
	case *types.Optional:
		if !v.HasValue() {
			b.write(dsl.NotSet)
			return
		}
		b.value(v.GetValue())
	case *indexMap, *indexSet: // to list their keys would be to read all of them
		b.write("an index")
	case traits.Mapper:
		b.mapping(v)
	case traits.Lister:
		b.list(v)
	case types.String:
		b.write(strconv.Quote(cut(string(v), longestValue+1)))
	default:
		b.scalar(v)
	}
}

func (b *brief) scalar(v ref.Val) {
	switch value, err := plainScalar(v); {
	case err != nil:
		b.write(named(v.Type().TypeName()))
	case value == nil:
		b.write("null")
	default:
		b.write(cut(plain.Text(value), longestValue+1))
	}
}

func (b *brief) list(v traits.Lister) {
	b.write("[")
	for i, it := 0, v.Iterator(); !b.full() && it.HasNext() == types.True; i++ {
		if i > 0 {
			b.write(", ")
		}
		b.value(it.Next())
	}
	b.write("]")
}

// mapping writes a map, sorted by its keys.
func (b *brief) mapping(v traits.Mapper) {
	var keys []string
	of := map[string]ref.Val{}
	for it := v.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name := fmt.Sprint(key.Value())
		keys, of[name] = append(keys, name), key
	}
	slices.Sort(keys)
	b.write("{")
	for i, name := range keys {
		if b.full() {
			break
		}
		if i > 0 {
			b.write(", ")
		}
		b.write(cut(name, longestValue+1) + ": ")
		b.value(v.Get(of[name]))
	}
	b.write("}")
}
