// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"sync"

	"github.com/klauspost/compress/s2"
)

// body is an object's JSON as it is held: compressed where that is worth it.
type body struct {
	data []byte
	// dictionary is what it was compressed with, nil where it is as it was.
	dictionary *s2.Dict
}

// read gives the JSON to use, which must not keep it. An object of which none is held has none.
func (b body) read(use func(json []byte)) {
	if b.dictionary == nil {
		use(b.data)
		return
	}
	buf := texts.Get().(*[]byte)
	defer texts.Put(buf)
	text, err := b.dictionary.Decode((*buf)[:0], b.data)
	if err != nil {
		return // not reached: it was compressed with this dictionary
	}
	*buf = text
	use(text)
}

// length is how many bytes of JSON there are.
func (b body) length() int {
	if b.dictionary == nil {
		return len(b.data)
	}
	n, err := s2.DecodedLen(b.data)
	if err != nil {
		return 0 // not reached: it was compressed with the dictionary
	}
	return n
}

// texts are buffers for JSON that is looked at.
var texts = sync.Pool{New: func() any { return new([]byte) }}

const (
	// firstWindow is after how many objects it is looked whether the first dictionary serves still. It is twice as
	// many for each one that follows: where objects are not alike at all, there are few dictionaries all the same.
	firstWindow = 64
	// worse is by how much the objects of a window must be larger, compressed, than those of the best one before
	// there is another dictionary: twice.
	worse = 2
	// most is how much of the JSON of an object becomes a dictionary.
	most = s2.MaxDictSize
)

// Press compresses the objects of the sources that share it. A dictionary takes some 35 KB, so sources of one resource share
// one: a namespace may have two objects. The zero value is ready for use. It must not be copied.
type Press struct{ press }

// press compresses objects. The first one is the dictionary for those that follow: objects of a
// resource are alike, and one is enough. When those that come are not like it any more, one of theirs takes its
// place; each object keeps the one that it was compressed with.
type press struct {
	mu         sync.Mutex
	dictionary *s2.Dict
	// window is how many objects there are before it is looked again. Count, before and after are of those that came
	// since: how many, and their size in bytes. Best is the least share that a window with this dictionary left.
	window, count, before, after int
	best                         float64
}

// hold returns a body of the JSON, which it copies. Out is a buffer to work in, which is returned for the next one.
func (p *press) hold(json, out []byte) (body, []byte) {
	d := p.dictionaryFor(json)
	if d == nil {
		return body{data: exactly(json)}, out
	}
	out = d.Encode(out, json)
	p.judge(len(json), len(out))
	if held := len(out); held < len(json)*7/8 {
		return body{data: exactly(out), dictionary: d}, out[:cap(out)]
	}
	return body{data: exactly(json)}, out[:cap(out)]
}

// exactly copies data, so that not a byte more than it needs stays in memory.
func exactly(data []byte) []byte {
	out := make([]byte, len(data))
	copy(out, data)
	return out
}

func (p *press) dictionaryFor(json []byte) *s2.Dict {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dictionary == nil {
		p.dictionary = s2.MakeDict(exactly(json[:min(len(json), most)]), nil) // nil of a few bytes
		p.window = max(2*p.window, firstWindow)
		p.count, p.before, p.after, p.best = 0, 0, 0, 1
	}
	return p.dictionary
}

// judge gives a dictionary up that does not serve any more.
func (p *press) judge(before, after int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count, p.before, p.after = p.count+1, p.before+before, p.after+after
	if p.count < p.window {
		return
	}
	share := float64(p.after) / float64(p.before)
	if share > worse*p.best {
		p.dictionary = nil
	}
	p.best = min(p.best, share)
	p.count, p.before, p.after = 0, 0, 0
}
