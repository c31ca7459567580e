// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// Frames are the events of a watch, one after the other.
type Frames struct {
	body io.ReadCloser
	buf  []byte
	// start and end are of what was read and not given out yet; up to seen there is no end of a line in it.
	start, end, seen int
}

// Watch opens a watch.
func (c *Client) Watch(ctx context.Context, target, accept string) (*Frames, error) {
	body, err := c.Open(ctx, target, accept)
	if err != nil {
		return nil, err
	}
	return &Frames{body: body, buf: make([]byte, 64<<10)}, nil
}

// Close ends the watch.
func (f *Frames) Close() { f.body.Close() }

// Next returns the next event as it is written; it is good until Next is called again. API servers end each event with
// the end of a line, and have none in it. [io.EOF] is the end of the watch.
func (f *Frames) Next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(f.buf[f.seen:f.end], '\n'); i >= 0 {
			frame := f.buf[f.start : f.seen+i]
			f.start = f.seen + i + 1
			f.seen = f.start
			return frame, nil
		}
		f.seen = f.end
		f.room()
		n, err := f.body.Read(f.buf[f.end:])
		f.end += n
		if n == 0 && err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				err = io.EOF
			}
			return nil, err
		}
	}
}

// room makes room for more.
func (f *Frames) room() {
	if f.start == f.end {
		f.start, f.end, f.seen = 0, 0, 0
	}
	if f.end < len(f.buf) {
		return
	}
	to := f.buf
	if f.start < len(f.buf)/2 {
		to = make([]byte, 2*len(f.buf))
	}
	copy(to, f.buf[f.start:f.end])
	f.end -= f.start
	f.seen -= f.start
	f.buf, f.start = to, 0
}
