// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"bytes"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/plain/scan"
)

// Fields are fields of an object that a reader looks at. Without any path they are the whole object.
type Fields struct{ at projection }

// FieldsOf returns the fields with these paths. An empty path is the whole object.
func FieldsOf(paths []dsl.Path) Fields {
	f := Fields{projection{}}
	for _, path := range paths {
		if odd := slices.IndexFunc(path, isEscaped); odd >= 0 {
			path = path[:odd]
		}
		if len(path) == 0 {
			return Fields{}
		}
		f.at.add(path)
	}
	return f
}

// isEscaped reports whether JSON may contain the key with escapes.
func isEscaped(key string) bool {
	return strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`"\<>&`, r) })
}

// Differ reports whether two states of an object differ in the fields. It also compares the managedFields entries of
// managers that count, as far as the cache holds them. In doubt, for example if a value is written in another way, it
// returns true. It decodes no trees.
func (f Fields) Differ(a, b *Object, counts func(manager string) bool) (differ bool) {
	a.body.read(func(is []byte) {
		b.body.read(func(was []byte) {
			differ = len(is) == 0 || len(was) == 0 || f.at.differ(is, was) ||
				entriesDiffer(is[a.metadata.from:a.metadata.to], was[b.metadata.from:b.metadata.to], counts)
		})
	})
	return differ
}

// differ compares the values at the projection's paths. A value that only one object has counts as a difference, and so
// does a map instead of another value.
func (p projection) differ(a, b []byte) bool {
	if len(p) == 0 {
		return !bytes.Equal(a, b)
	}
	if bytes.Equal(a, b) {
		return false
	}
	if len(a) == 0 || len(b) == 0 || a[0] != '{' || b[0] != '{' {
		return true
	}
	for key, below := range p {
		if below.differ(scan.Member(a, key), scan.Member(b, key)) {
			return true
		}
	}
	return false
}

// entriesDiffer compares the managedFields entries of managers that count.
func entriesDiffer(a, b []byte, counts func(manager string) bool) bool {
	const key = "managedFields"
	is, was := scan.Member(a, key), scan.Member(b, key)
	return !bytes.Equal(is, was) && !bytes.Equal(counted(is, counts), counted(was, counts))
}

func counted(entries []byte, counts func(manager string) bool) (out []byte) {
	for entry := range scan.Elements(entries) {
		if counts(scan.Text(scan.Member(entry, "manager"))) {
			out = append(out, entry...)
		}
	}
	return out
}
