// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "bytes"

// Scan reads JSON as API servers write it, from front to back, and builds nothing. What it does not know how to read
// makes it stop: Bad is true then, and all that it still returns is empty.
type Scan struct {
	data []byte
	at   int
	bad  bool
}

// NewScan returns a scan of one value.
func NewScan(data []byte) *Scan { return &Scan{data: data} }

// Bad reports whether the data is invalid.
func (s *Scan) Bad() bool { return s.bad }

// next is the first byte that is not blank, 0 at the end.
func (s *Scan) next() byte {
	for ; s.at < len(s.data); s.at++ {
		if c := s.data[s.at]; c > ' ' {
			return c
		}
	}
	s.bad = true
	return 0
}

// take goes past a byte if it is the next one.
func (s *Scan) take(c byte) bool {
	if s.next() != c {
		return false
	}
	s.at++
	return true
}

// Members calls visit for each member of an object, which must read the value with one call of Skip, Text, Int, Members
// or Elements. The key is as it is written.
func (s *Scan) Members(visit func(key []byte)) {
	if !s.take('{') {
		s.bad = true
		return
	}
	if s.take('}') {
		return
	}
	for !s.bad {
		key := s.Text()
		if !s.take(':') {
			s.bad = true
			return
		}
		visit(key)
		if s.take('}') {
			return
		}
		if !s.take(',') {
			s.bad = true
		}
	}
}

// Elements calls visit for each element of a list, which must read it.
func (s *Scan) Elements(visit func()) {
	if !s.take('[') {
		s.bad = true
		return
	}
	if s.take(']') {
		return
	}
	for !s.bad {
		visit()
		if s.take(']') {
			return
		}
		if !s.take(',') {
			s.bad = true
		}
	}
}

// Text returns a string as it is written between its quotes. It is part of the data.
func (s *Scan) Text() []byte {
	if !s.take('"') {
		s.bad = true
		return nil
	}
	begin := s.at
	for {
		i := bytes.IndexByte(s.data[s.at:], '"')
		if i < 0 {
			s.bad = true
			return nil
		}
		s.at += i + 1
		if !escaped(s.data[begin : s.at-1]) {
			return s.data[begin : s.at-1]
		}
	}
}

// escaped says whether what follows the text is escaped by it: whether it ends in an odd number of backslashes.
func escaped(text []byte) bool {
	n := 0
	for i := len(text) - 1; i >= 0 && text[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

// Int returns a whole number.
func (s *Scan) Int() int64 {
	negative := s.take('-')
	var n int64
	begin := s.at
	for ; s.at < len(s.data) && s.data[s.at] >= '0' && s.data[s.at] <= '9'; s.at++ {
		n = n*10 + int64(s.data[s.at]-'0')
	}
	s.bad = s.bad || s.at == begin
	if negative {
		return -n
	}
	return n
}

// Skip goes past a value.
func (s *Scan) Skip() {
	switch s.next() {
	case '"':
		s.Text()
	case '{', '[':
		s.skipDeep()
	default:
		for s.at < len(s.data) {
			switch s.data[s.at] {
			case ',', '}', ']', ' ', '\n':
				return
			}
			s.at++
		}
	}
}

// skipDeep goes past an object or a list, whatever stands in it.
func (s *Scan) skipDeep() {
	for depth := 0; s.at < len(s.data); {
		switch s.data[s.at] {
		case '"':
			s.Text()
			if s.bad {
				return
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				s.at++
				return
			}
		}
		s.at++
	}
	s.bad = true
}
