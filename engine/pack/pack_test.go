// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"errors"
	"testing"
)

func TestPack(t *testing.T) {
	for name, data := range map[string][]byte{"nothing": {}, "text": []byte(`{"a":"b"}`), "as much as may be": make([]byte, Most)} {
		text, err := Pack(data)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Unpack(text); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s comes back as %d bytes, %v", name, len(got), err)
		}
	}
}

func TestUnpackRefuses(t *testing.T) {
	large, err := Pack(make([]byte, Most+1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Unpack(large); !errors.Is(err, ErrLarge) {
		t.Errorf("a byte too many: %v", err)
	}
	for name, text := range map[string]string{"what is no text of bytes": "%%%", "what is cut": "AAAA"} {
		if _, err := Unpack(text); err == nil {
			t.Errorf("%s is unpacked", name)
		}
	}
}
