// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"unicode/utf8"

	values "github.com/handwerk-dev/handwerk/dsl/plain"
)

// Hash returns the hash that [values.Hash] returns for the decoded value, without building a tree. It differs for an object that has a
// key twice. Except, if it is not nil, reports which members of the value itself are left out, by their written keys.
func Hash(value []byte, except func(key []byte) bool) uint64 {
	value = value[after(value, 0):]
	if len(value) == 0 {
		return 0
	}
	switch value[0] {
	case '{':
		members, sum := 0, uint64(0)
		for key, below := range Members(value) {
			if except == nil || !except(key) {
				members, sum = members+1, sum+values.HashMember(decoded(key), Hash(below, nil))
			}
		}
		return values.HashMap(members, sum)
	case '[':
		items := 0
		for range Elements(value) {
			items++
		}
		list := values.HashList(items)
		for item := range Elements(value) {
			list = values.HashItem(list, Hash(item, nil))
		}
		return list
	case '"':
		return values.HashText(decoded(value[1 : skipText(value, 0)-1]))
	}
	if n, whole := small(value[:skip(value, 0)]); whole {
		return values.HashInt(n)
	}
	sum, _ := values.Hash(Value(value)) // regular values are JSON
	return sum
}

// decoded returns a string from its text between the quotes. Most strings need no decoding.
func decoded(written []byte) []byte {
	if bytes.IndexByte(written, '\\') < 0 && utf8.Valid(written) {
		return written
	}
	return []byte(unquote(written))
}
