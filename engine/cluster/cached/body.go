// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"sync"

	"github.com/klauspost/compress/s2"
)

// body is an object's stored JSON, compressed if that saves memory.
type body struct {
	data []byte
	// dictionary is the dictionary of the compression; nil if the JSON is not compressed.
	dictionary *s2.Dict
}

// read calls use with the JSON, which use must not keep. If no JSON is held, it is empty.
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

// length returns the length of the JSON in bytes.
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

// texts are buffers for uncompressed JSON.
var texts = sync.Pool{New: func() any { return new([]byte) }}

const (
	// firstWindow is the number of objects after which the first dictionary is judged. It doubles for each
	// following dictionary: if objects are not alike at all, there are still few dictionaries.
	firstWindow = 64
	// worse is the factor by which a window must compress worse than the best one before, until the dictionary is
	// replaced: twice.
	worse = 2
	// most is how much of an object's JSON becomes a dictionary.
	most = s2.MaxDictSize
)

// Compressor compresses the objects of the sources that share it. A dictionary takes some 35 KB, so sources of one
// resource share one: some namespaces have only two objects. The zero value is ready for use. It must not be
// copied.
type Compressor struct{ press }

// press compresses objects. The first object is the dictionary for those that follow: objects of a resource are
// alike, and one is enough. If later objects are not like it any more, one of them replaces it; each object keeps
// the dictionary that it was compressed with.
type press struct {
	mu         sync.Mutex
	dictionary *s2.Dict
	// window is the number of objects before the dictionary is judged again. Count, before and after are the number
	// and the sizes in bytes of the objects since. Best is the smallest ratio of a window with this dictionary.
	window, count, before, after int
	best                         float64
}

// hold returns a body with a copy of the JSON. Out is a working buffer, which is returned for reuse.
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

// exactly copies data to a slice without spare capacity.
func exactly(data []byte) []byte {
	out := make([]byte, len(data))
	copy(out, data)
	return out
}

func (p *press) dictionaryFor(json []byte) *s2.Dict {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dictionary == nil {
		p.dictionary = s2.MakeDict(exactly(json[:min(len(json), most)]), nil) // nil for a few bytes
		p.window = max(2*p.window, firstWindow)
		p.count, p.before, p.after, p.best = 0, 0, 0, 1
	}
	return p.dictionary
}

// judge drops a dictionary that does not compress well any more.
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
