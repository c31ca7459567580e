// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

// pressed is what a hostile hand packs: progress.Pack would refuse it.
func pressed(t testing.TB, plain string) string {
	t.Helper()
	var buf bytes.Buffer
	w, err := flate.NewWriter(&buf, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(plain)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(buf.Bytes())
}

// bombs are texts that are small for what they come to, each as the rest of progress in which the handler h has seen digest.
func bombs(t testing.TB, digest string) map[string]string {
	const head = `{"handwerk":2,"uid":"0b1f","generation":1,"handlers":{"h":{"seen":"%s"}},`
	empty := strings.TrimSuffix(strings.Repeat("{},", 1<<20), ",")
	several := strings.Repeat("{},", 80000) + "{}"
	of := func(rest string) string { return fmt.Sprintf(head, digest) + rest + "}" }
	return map[string]string{
		"a packed essence":                    of(`"packed":"` + pressed(t, `{"old":{"spec":[`+empty+`]}}`) + `"`),
		"packed essences of handlers":         of(`"packed":"` + pressed(t, `{"olds":{"h":{"spec":[`+empty+`]}}}`) + `"`),
		"an essence of maps":                  of(`"old":{"spec":[` + several + `]}`),
		"a hundred kilobytes that are packed": of(`"packed":"` + pressed(t, `{"old":{"spec":[`+empty+`]}}`) + strings.Repeat("A", 100<<10) + `"`),
	}
}

// entries are texts of so many entries that hardly any is one.
func entries() map[string]string {
	var many, parts strings.Builder
	for i := range 30000 {
		fmt.Fprintf(&many, `"%d":{},`, i)
	}
	parts.WriteString(`{"handwerk":2,"uid":"0b1f","handlers":{"h":{"seen":"x","try":{"cause":"update","parts":{"of":{`)
	parts.WriteString(many.String())
	parts.WriteString(`"x":{}}}}}}}`)
	return map[string]string{
		"handlers": `{"handwerk":2,"uid":"0b1f","handlers":{` + many.String() + `"h":{"seen":"x"}}}`, "sub-handlers": parts.String(),
	}
}

// mostForAText is how much memory may be asked for in reading progress, some of it several times over, on an object of a few hundred bytes.
const mostForAText = 24 << 20

// asks is how many bytes are asked for meanwhile.
func asks(do func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// TestABombCostsLittle holds that progress which a user wrote on an object takes no more memory than the object is worth, and that
// the object was handled all the same: nothing is created once more for it.
func TestABombCostsLittle(t *testing.T) {
	h, size := reading(updates).named("h"), reading(updates, dsl.Field("spec.size")).named("h")
	red, blue := object(1, "red"), object(1, "blue")
	for name, text := range bombs(t, NewSnapshot(red).Digest(h.View)) {
		t.Run(name, func(t *testing.T) {
			var b Progress
			var err, lost, unread error
			if took := asks(func() {
				if b, err = Load(text, uid); err == nil {
					b = b.adapt([]Handler{h}, Moment{Look: NewSnapshot(blue), Generation: 2})
				}
			}); took > 1<<20+2*len(text) || err != nil || !b.Known {
				t.Errorf("opening it takes %d bytes; known %v, %v", took, b.Known, err)
			}
			if e, _ := b.Entry("h"); e.Due(h.Handler, Facts{Now: NewSnapshot(blue).Digest(h.View), Present: true, First: true}) != dsl.Update {
				t.Errorf("the handler is not to run for a change: %+v", e)
			}
			if took := asks(func() { _, unread = b.Old(h, NewSnapshot(blue)) }); took > mostForAText || !errors.Is(unread, ErrLarge) {
				t.Errorf("what was takes %d bytes: %v", took, unread)
			}
			if took := asks(func() {
				b, _ = Load(text, uid)
				b, lost = b.Adapt([]Handler{size}, Moment{Look: NewSnapshot(blue), Generation: 2})
			}); took > mostForAText || !errors.Is(lost, ErrLarge) {
				t.Errorf("a handler that looks at something else takes %d bytes: %v", took, lost)
			}
			if e, _ := b.Entry("h"); e.Due(size.Handler, Facts{Now: NewSnapshot(blue).Digest(size.View), Present: true, First: true}) != dsl.Update {
				t.Errorf("that handler is not to run for a change: %+v", e)
			}
			next, _, err := b.handled(size, blue).Encode([]Handler{size}, NewSnapshot(blue), maxSize)
			if err != nil || len(next) > 300 {
				t.Errorf("what is stored next has %d bytes, %v", len(next), err)
			}
		})
	}
}

// TestEntriesAreBounded holds that a text of more entries than anybody stores is not read.
func TestEntriesAreBounded(t *testing.T) {
	for name, text := range entries() {
		t.Run(name, func(t *testing.T) {
			var b Progress
			var err error
			if took := asks(func() { b, err = Load(text, uid) }); took > 1<<20+2*len(text) || err == nil || b.Known {
				t.Errorf("it takes %d bytes; known %v, %v", took, b.Known, err)
			}
		})
	}
}

// TestWhatIsStoredIsRead holds that a process reads what one before it has stored, however large or odd the object was.
func TestWhatIsStoredIsRead(t *testing.T) {
	h := reading(updates).named("h")
	alike := make([]any, 200000)
	for i := range alike {
		alike[i] = map[string]any{}
	}
	for name, tt := range map[string]struct {
		spec     any
		degraded bool
	}{
		"a long text of one letter":            {strings.Repeat("x", 500<<10), false},
		"a list of empty maps":                 {alike[:30000], false},
		"a list of more of them than are read": {alike, true},
	} {
		t.Run(name, func(t *testing.T) {
			was := map[string]any{"spec": tt.spec}
			text, degraded, err := Progress{UID: uid}.handled(h, was).Encode([]Handler{h}, NewSnapshot(was), maxSize)
			if err != nil || degraded != tt.degraded {
				t.Fatalf("degraded %v, %v", degraded, err)
			}
			b, err := Load(text, uid)
			if err != nil {
				t.Fatal(err)
			}
			b = b.adapt([]Handler{h}, Moment{Look: NewSnapshot(object(1, "red"))})
			old, err := b.Old(h, NewSnapshot(object(1, "red")))
			if err != nil || !tt.degraded && !cmp.Equal(old, was) {
				t.Errorf("it is read as %d values, %v", len(old), err)
			}
		})
	}
}

// FuzzLoad holds that no text makes reading progress take much more memory than the text and the object, and that what is read
// can be stored and is read again.
func FuzzLoad(f *testing.F) {
	h := reading(updates).named("h")
	red := object(1, "red")
	for _, text := range bombs(f, NewSnapshot(red).Digest(h.View)) {
		f.Add(text)
	}
	for _, text := range entries() {
		f.Add(text)
	}
	for _, text := range []string{
		`{"handwerk":2,"uid":"0b1f","handlers":{"h":{"seen":"x"}},"old":{"spec":{"size":2}}}`,
		`{"handwerk":2,"uid":"0b1f","handlers":{"h":{"of":"spec.size","seen":"?"}},"fields":["spec.size"],"olds":{"h":{"spec":{"size":2}}},"without":["h"]}`,
		`{"handwerk":1,"handlers":{"h":{"cause":"delete","done":true}}}`,
		`{"handwerk":2,"uid":"0b1f","packed":"` + pressed(f, `{"old":{"spec":{"size":2}}}`) + `"}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > MostOfAll {
			return // no object has it
		}
		handlers := []Handler{h}
		took := asks(func() {
			b, err := Load(text, uid)
			if err != nil {
				return
			}
			b = b.adapt(handlers, Moment{Look: NewSnapshot(red), Generation: 1})
			_, _ = b.Old(h, NewSnapshot(red))
			again, _, err := b.Encode(handlers, NewSnapshot(red), maxSize)
			if err != nil && !errors.Is(err, errRoom) {
				t.Fatal(err)
			}
			if _, err := Load(again, uid); err != nil {
				t.Fatalf("%s is not read: %v", again, err)
			}
		})
		if took > 4*mostForAText {
			t.Errorf("a text of %d bytes takes %d", len(text), took)
		}
	})
}
