// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"reflect"
	"unicode/utf8"
)

// Garbled reports whether a value is a text, of whatever type of texts, that is not UTF-8, and returns it: JSON would make another
// text of it.
func Garbled(value any) (text string, garbled bool) {
	v := reflect.ValueOf(value)
	if v.Kind() != reflect.String || utf8.ValidString(v.String()) {
		return "", false
	}
	return v.String(), true
}
