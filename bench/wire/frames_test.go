// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestFramesComeWholeHoweverTheyAreCut(t *testing.T) {
	var text strings.Builder
	var want []string
	for i := range 200 {
		frame := fmt.Sprintf("%d:%s", i, strings.Repeat("x", i*37%900))
		want = append(want, frame)
		text.WriteString(frame + "\n")
	}
	for name, reader := range map[string]io.Reader{
		"a byte at a time": iotest.OneByteReader(strings.NewReader(text.String())),
		"halves":           iotest.HalfReader(strings.NewReader(text.String())),
		"all at once":      strings.NewReader(text.String()),
		"end with data":    iotest.DataErrReader(strings.NewReader(text.String())),
	} {
		t.Run(name, func(t *testing.T) {
			f := &Frames{body: io.NopCloser(reader), buf: make([]byte, 64)}
			for i, frame := range want {
				got, err := f.Next()
				if err != nil || string(got) != frame {
					t.Fatalf("frame %d: got %q, %v, want %q", i, got, err, frame)
				}
			}
			if _, err := f.Next(); !errors.Is(err, io.EOF) {
				t.Errorf("after the last frame: got %v, want the end", err)
			}
		})
	}
}
