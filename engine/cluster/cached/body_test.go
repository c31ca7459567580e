// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

// pressed is what a press holds of texts, after all have come.
func pressed(texts [][]byte) (bodies []body, size, dictionaries int) {
	p, out := &press{}, []byte(nil)
	seen := map[any]bool{}
	for _, text := range texts {
		var b body
		b, out = p.hold(text, out)
		bodies, size = append(bodies, b), size+len(b.data)
		seen[b.dictionary] = true
	}
	return bodies, size, len(seen)
}

// alike are the texts of objects of one kind.
func alike(kind string, n int) (out [][]byte) {
	for i := range n {
		out = append(out, fmt.Appendf(nil, `{"apiVersion":"example.com/v1","kind":%q,"metadata":{"name":"%s-%05d","namespace":"default","uid":"%08x"},"spec":{"replicas":%d,"image":"registry.example.com/%s:1.%d"}}`,
			kind, kind, i, rand.Uint32(), i, kind, i))
	}
	return out
}

// noise are texts that nothing is like.
func noise(n int) (out [][]byte) {
	for range n {
		text := make([]byte, 500)
		for i := range text {
			text[i] = byte(rand.Uint32())
		}
		out = append(out, text)
	}
	return out
}

func TestPressGivesBackWhatItWasGiven(t *testing.T) {
	for name, texts := range map[string][][]byte{
		"alike":               alike("Foo", 300),
		"nothing alike":       noise(300),
		"nothing":             {{}, {}},
		"very short":          {[]byte(`{}`), []byte(`{"a":1}`), []byte(`{}`)},
		"longer than any":     {bytes.Repeat([]byte("abcdefgh"), 100_000), []byte(`{"a":1}`), bytes.Repeat([]byte("abcdefgx"), 100_000)},
		"others, then others": append(alike("Foo", 200), alike("Unlike", 2000)...),
	} {
		t.Run(name, func(t *testing.T) {
			bodies, _, _ := pressed(texts)
			for i, b := range bodies {
				b.read(func(json []byte) {
					if !bytes.Equal(json, texts[i]) {
						t.Fatalf("text %d is %q, want %q", i, json, texts[i])
					}
				})
			}
		})
	}
}

func TestPressMakesSmallWhatIsAlike(t *testing.T) {
	texts := alike("Foo", 1000)
	_, size, dictionaries := pressed(texts)
	if share := float64(size) / float64(len(bytes.Join(texts, nil))); share > 0.4 || dictionaries != 1 {
		t.Errorf("a share of %.2f is left, with %d dictionaries", share, dictionaries)
	}
}

// TestPressMakesLargeOnesSmall holds that objects are compressed also where each is larger than a dictionary may be.
func TestPressMakesLargeOnesSmall(t *testing.T) {
	var texts [][]byte
	for range 20 {
		texts = append(texts, bytes.Join(alike("Foo", 1000), nil))
	}
	bodies, size, _ := pressed(texts)
	if share := float64(size) / float64(len(bytes.Join(texts, nil))); share > 0.5 {
		t.Errorf("a share of %.2f is left", share)
	}
	for i, b := range bodies {
		b.read(func(json []byte) {
			if !bytes.Equal(json, texts[i]) {
				t.Errorf("text %d is another", i)
			}
		})
	}
}

// TestPressTakesAnotherDictionary holds that objects that are not like the first ones any more are compressed with one of their own, and
// that there are few dictionaries where nothing is alike.
func TestPressTakesAnotherDictionary(t *testing.T) {
	later := alike("SomethingThatIsOfAnotherKind", 4000)
	_, alone, _ := pressed(later)
	_, first, _ := pressed(alike("Foo", 100))
	_, both, _ := pressed(append(alike("Foo", 100), later...))
	if both > first+2*alone {
		t.Errorf("both take %d bytes, one %d and the other %d", both, first, alone)
	}
	if _, _, dictionaries := pressed(append(alike("Foo", 5000), noise(5000)...)); dictionaries > 12 {
		t.Errorf("there are %d dictionaries", dictionaries)
	}
}

func TestABodyIsReadByMany(t *testing.T) {
	texts := alike("Foo", 50)
	bodies, _, _ := pressed(texts)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i, b := range bodies {
				b.read(func(json []byte) {
					if !bytes.Equal(json, texts[i]) {
						t.Errorf("text %d is %q", i, json)
					}
				})
			}
		})
	}
	wg.Wait()
}
