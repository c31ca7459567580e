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

	"github.com/handwerk-dev/handwerk/dsl/plain/scan"
)

// framer splits a watch into frames.
type framer struct {
	runtime.Framer
	last *parts
}

// NewFrameReader returns a reader of frames. Each call of Read returns one frame, or as much of it as fits into the
// buffer, with io.ErrShortBuffer.
func (f framer) NewFrameReader(r io.ReadCloser) io.ReadCloser {
	return &frames{ReadCloser: r, last: f.last}
}

const (
	// chunk is the least amount to read at once.
	chunk = 8 << 10
	// spare is the greatest size of a buffer that is kept for later frames.
	spare = 64 << 10
	// mostFrame limits the size of an event in bytes: twice the API server's limit for an object
	// (MaxRequestBodyBytes in k8s.io/apiserver/pkg/server/config.go). A larger event is a fault of the server, and
	// would fill the memory.
	mostFrame = 2 * 3 << 20
	// mostTried is the size of a part of a frame that is checked again when there is more.
	mostTried = 4 * chunk
)

// errLarge is the error for an event that is too large.
var errLarge = fmt.Errorf("reading event: it is larger than %d MiB", mostFrame>>20)

// frames splits a stream of JSON objects. An object ends with its closing bracket, because a server need not send
// anything after it until there is a next one.
type frames struct {
	io.ReadCloser
	// last is the frame that was returned.
	last *parts
	// buf[from:to] was read and not returned yet; rest is the remainder of a frame that was returned in part.
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

// next returns the next frame, which is valid until the next call. Mostly, finding the end and checking the frame are
// one.
func (f *frames) next() ([]byte, error) {
	if f.from == f.to && cap(f.buf) > spare {
		f.buf, f.from, f.to = nil, 0, 0
	}
	for {
		f.trim()
		var end int
		if *f.last, end = eventIn(f.buf[f.from:f.to]); end >= 0 {
			return f.cut(f.from + end), nil
		}
		if end == scan.Odd || f.to-f.from >= mostTried {
			break
		}
		if _, err := f.more(); err != nil {
			return nil, err
		}
	}
	frame, err := f.find()
	if err == nil {
		*f.last, _ = eventIn(frame)
	}
	return frame, err
}

// find returns the next frame, whatever is in it.
func (f *frames) find() ([]byte, error) {
	var end ending
	for at := f.from; ; {
		n, over, err := end.find(f.buf[at:f.to])
		if err != nil {
			return nil, err
		}
		if at += n; over {
			f.trim()
			return f.cut(at), nil
		}
		moved, err := f.more()
		if err != nil {
			return nil, err
		}
		at -= moved
	}
}

// trim skips the whitespace before the next frame.
func (f *frames) trim() {
	f.from = f.to - len(bytes.TrimLeft(f.buf[f.from:f.to], whitespace))
}

// cut returns the frame that ends at this position.
func (f *frames) cut(end int) []byte {
	frame := f.buf[f.from:end]
	f.from = end
	return frame
}

const whitespace = " \t\r\n"

// more reads more data after the present data, and returns by how much that has moved to the front.
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

// ending finds the end of an object. It only checks brackets and strings; a decoder checks the rest.
type ending struct {
	depth   int
	text    bool // inside a string
	escaped bool // after a backslash
}

// find continues with more text. It returns how much of it belongs to the object, and whether the object ends
// there.
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
