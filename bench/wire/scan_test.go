// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/bench/wire"
)

func TestAScanFindsWhatItIsAskedFor(t *testing.T) {
	text := `{"a":{"deep":[1,{"x":"}\"]"}],"n":null},"name":"foo-\"1\\","empty":{},"list":["p","q"],"none":[],"n":-12 , "yes":true}`
	var got strings.Builder
	s := wire.NewScan([]byte(text))
	s.Members(func(key []byte) {
		switch string(key) {
		case "name":
			fmt.Fprintf(&got, "name=%s ", s.Text())
		case "n":
			fmt.Fprintf(&got, "n=%d ", s.Int())
		case "list", "none":
			s.Elements(func() { fmt.Fprintf(&got, "element=%s ", s.Text()) })
		case "empty":
			s.Members(func([]byte) { t.Error("a member of an empty object") })
		default:
			s.Skip()
		}
	})
	if want := `name=foo-\"1\\ element=p element=q n=-12 `; got.String() != want || s.Bad() {
		t.Errorf("got %q, bad %t, want %q", got.String(), s.Bad(), want)
	}
}

func TestAScanSaysThatItCannotRead(t *testing.T) {
	for _, text := range []string{``, `{`, `{"a"`, `{"a":`, `{"a":"`, `{"a":{}`, `{"a":[{]`, `{"a":1,}`, `[]`, `{"a":"\"}`} {
		s := wire.NewScan([]byte(text))
		s.Members(func([]byte) { s.Skip() })
		if !s.Bad() {
			t.Errorf("%q is taken for JSON", text)
		}
	}
}
