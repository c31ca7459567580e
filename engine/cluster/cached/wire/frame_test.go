// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// TestAFrameHasABound holds that an event which does not end is given up before it fills the memory, and that one of the size
// of the largest object is read.
func TestAFrameHasABound(t *testing.T) {
	tests := map[string]struct {
		size int64
		want error
	}{
		"the largest object": {mostFrame / 2, nil},
		"what never ends":    {1 << 40, errLarge},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			read := int64(0)
			text := io.LimitReader(endless('x'), tt.size)
			stream := io.MultiReader(strings.NewReader(`{"a":"`), counting{text, &read}, strings.NewReader(`"}`))
			f := &frames{ReadCloser: io.NopCloser(stream), last: new(parts)}
			frame, err := f.next()
			if !errors.Is(err, tt.want) {
				t.Fatalf("the error is %v, want %v", err, tt.want)
			}
			if err == nil && int64(len(frame)) != tt.size+8 {
				t.Errorf("the frame has %d bytes", len(frame))
			}
			if read > 2*mostFrame {
				t.Errorf("%d bytes were read", read)
			}
		})
	}
}

// endless is a text of one character.
type endless byte

func (e endless) Read(into []byte) (int, error) {
	for i := range into {
		into[i] = byte(e)
	}
	return len(into), nil
}

// counting counts what is read.
type counting struct {
	io.Reader
	n *int64
}

func (c counting) Read(into []byte) (int, error) {
	n, err := c.Reader.Read(into)
	*c.n += int64(n)
	return n, err
}
