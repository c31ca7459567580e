// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// framer finds the frames of a watch.
type framer struct{ runtime.Framer }

// NewFrameReader returns a reader of frames. Each call of Read returns one, or as much of it as the buffer takes along with
// io.ErrShortBuffer.
func (framer) NewFrameReader(r io.ReadCloser) io.ReadCloser { return &frames{ReadCloser: r} }

const (
	// chunk is how much is read at once at least.
	chunk = 8 << 10
	// spare is how large a buffer may be that is kept for the next frames.
	spare = 64 << 10
	// mostFrame bounds one event, in bytes: twice what the API server takes of an object (MaxRequestBodyBytes in
	// k8s.io/apiserver/pkg/server/config.go). A larger one is a server's mistake or lie, and would fill the memory.
	mostFrame = 2 * 3 << 20
)

// errLarge is the error of an event that is too large.
var errLarge = fmt.Errorf("reading event: it is larger than %d MiB", mostFrame>>20)

// frames cuts a stream of JSON objects into these. An object ends with the bracket that closes it: no server need send
// anything behind it until there is a next one.
type frames struct {
	io.ReadCloser
	// buf[from:to] is what was read and not returned, rest what is left of a frame of which a part was returned.
	buf      []byte
	from, to int
	rest     []byte
	err      error
}

func (f *frames) Read(out []byte) (int, error) {
	if len(f.rest) == 0 {
		frame, err := f.next()
		if err != nil {
			return 0, err
		}
		f.rest = frame
	}
	n := copy(out, f.rest)
	if f.rest = f.rest[n:]; len(f.rest) > 0 {
		return n, io.ErrShortBuffer
	}
	return n, nil
}

// next returns the next frame, which is valid until the next call.
func (f *frames) next() ([]byte, error) {
	if f.from == f.to && cap(f.buf) > spare {
		f.buf, f.from, f.to = nil, 0, 0
	}
	var end ending
	for at := f.from; ; {
		n, over, err := end.find(f.buf[at:f.to])
		if err != nil {
			return nil, err
		}
		if at += n; over {
			frame := bytes.TrimLeft(f.buf[f.from:at], whitespace)
			f.from = at
			return frame, nil
		}
		moved, err := f.more()
		if err != nil {
			return nil, err
		}
		at -= moved
	}
}

const whitespace = " \t\r\n"

// more reads more behind what there is, and returns by how much that has moved to the front.
func (f *frames) more() (moved int, err error) {
	if f.err != nil {
		if errors.Is(f.err, io.EOF) && len(bytes.Trim(f.buf[f.from:f.to], whitespace)) > 0 {
			return 0, io.ErrUnexpectedEOF
		}
		return 0, f.err
	}
	if f.to-f.from > mostFrame {
		return 0, errLarge
	}
	if f.to+chunk > len(f.buf) {
		moved = f.from
		into := f.buf
		if f.to-f.from+chunk > len(into) {
			into = make([]byte, max(2*len(f.buf), f.to-f.from+chunk))
		}
		f.to = copy(into, f.buf[f.from:f.to])
		f.buf, f.from = into, 0
	}
	n, err := f.ReadCloser.Read(f.buf[f.to:])
	f.to += n
	f.err = err
	return moved, nil
}

// ending finds the end of an object. It looks at brackets and strings alone: what is between them is for a decoder to
// complain of.
type ending struct {
	depth   int
	text    bool // in a string
	escaped bool // behind a backslash
}

// find goes on with the text that follows. It returns how much of it belongs to the object, and whether that is over.
func (e *ending) find(data []byte) (n int, over bool, err error) {
	for i, b := range data {
		switch {
		case e.escaped:
			e.escaped = false
		case e.text:
			e.escaped, e.text = b == '\\', b != '"'
		case e.depth == 0 && b != '{':
			if strings.IndexByte(whitespace, b) < 0 {
				return 0, false, fmt.Errorf("reading event: it begins with %q", b)
			}
		case b == '"':
			e.text = true
		case b == '{' || b == '[':
			e.depth++
		case b == '}' || b == ']':
			if e.depth--; e.depth == 0 {
				return i + 1, true, nil
			}
		}
	}
	return len(data), false, nil
}
