// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
)

const uid = "0b1f"

// object is one with a spec of this size and color.
func object(size int64, color string) map[string]any {
	return map[string]any{"spec": map[string]any{"size": size, "color": color}}
}

// named gives a reader an id.
func (r Handler) named(id string) Handler {
	h := *r.Handler
	h.ID = id
	r.Handler = &h
	return r
}

// handled is progress in which the reader has handled an object.
func (b Progress) handled(h Handler, o map[string]any) Progress {
	snapshot := NewSnapshot(o)
	e := Entry{Try: Record{Cause: dsl.Update, Done: true}}
	return b.With(h.ID, e.End(h.View, snapshot.Digest(h.View), snapshot.Kept(h.View)))
}

// oldOf is what a handler of a small object gets to see of what was; nil where it cannot be read.
func oldOf(b Progress, h Handler) map[string]any {
	old, _ := b.Old(h, NewSnapshot(nil))
	return old
}

// adapt is Adapt for progress whose old state can be read.
func (b Progress) adapt(handlers []Handler, m Moment) Progress {
	b, _ = b.Adapt(handlers, m)
	return b
}

// reload stores progress and reads it for the handlers given, of an object that is so now.
func reload(t *testing.T, b Progress, was []Handler, stored map[string]any, is []Handler, now Moment) Progress {
	t.Helper()
	text, degraded, err := b.Encode(was, NewSnapshot(stored), maxSize)
	if err != nil || degraded {
		t.Fatalf("encoding: degraded %v, %v", degraded, err)
	}
	if !strings.HasPrefix(text, bookkeeping.StateMark) {
		t.Errorf("%s is not marked as an operator's", text)
	}
	got, err := Load(text, uid)
	if err != nil {
		t.Fatal(err)
	}
	return got.adapt(is, now)
}

func TestOldIsWhatAHandlerHandled(t *testing.T) {
	whole, size := reading(updates).named("whole"), reading(updates, dsl.Field("spec.size")).named("size")
	both := []Handler{whole, size}
	large := strings.Repeat("abcdefgh", 500)
	tests := map[string]struct {
		handlers    []Handler
		whole, size map[string]any
	}{
		"when all have handled the same":          {both, object(1, "red"), object(1, "red")},
		"when one has handled less":               {both, object(2, "red"), object(1, "red")},
		"when all of them name fields":            {[]Handler{size}, nil, object(1, "red")},
		"when it is large":                        {both, object(1, large), object(1, large)},
		"when it is large and they are different": {both, object(2, large), object(1, large)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := Progress{UID: uid, Generation: 3}.handled(size, tt.size)
			if tt.whole != nil {
				b = b.handled(whole, tt.whole)
			}
			now := object(9, "blue")
			got := reload(t, b, tt.handlers, now, tt.handlers, Moment{Look: NewSnapshot(now), Generation: 4})
			if diff := cmp.Diff(map[string]any{"spec": map[string]any{"size": tt.size["spec"].(map[string]any)["size"]}}, oldOf(got, size)); diff != "" {
				t.Errorf("of the one with a field (-want +got):\n%s", diff)
			}
			if tt.whole == nil {
				return
			}
			if diff := cmp.Diff(tt.whole, oldOf(got, whole)); diff != "" {
				t.Errorf("of the other (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOldOfNothing holds that what a handler has handled is known where that was nothing, and where nulls were
// among it, also where no more than that it is undone is known.
func TestOldOfNothing(t *testing.T) {
	note, whole := reading(updates, dsl.Field("spec.note")).named("h"), reading(updates).named("h")
	conf := reading(updates, dsl.Field("spec.conf")).named("h")
	nothing, nulls := map[string]any{}, map[string]any{"spec": map[string]any{"conf": map[string]any{"a": nil, "b": int64(1)}}}
	for name, tt := range map[string]struct {
		reader    Handler
		was, want map[string]any
	}{
		"a field that was not there": {note, object(1, "red"), nothing},
		"an object of nothing":       {whole, nothing, nothing},
		"a null below a field":       {conf, nulls, nulls},
	} {
		for _, seen := range []string{"", rerun} {
			t.Run(name+seen, func(t *testing.T) {
				b := Progress{UID: uid}.handled(tt.reader, tt.was)
				if seen != "" {
					e, _ := b.Entry("h")
					e.Handled = seen
					b = b.With("h", e)
				}
				now := map[string]any{"spec": map[string]any{"note": "x", "conf": "y"}}
				got := reload(t, b, []Handler{tt.reader}, now, []Handler{tt.reader}, Moment{Look: NewSnapshot(now)})
				if diff := cmp.Diff(tt.want, oldOf(got, tt.reader)); diff != "" {
					t.Errorf("old (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestMeet holds what a new process makes of progress, by what its handlers look at.
func TestMeet(t *testing.T) {
	whole, spec := reading(updates).named("h"), reading(updates, dsl.Field("spec")).named("h")
	size, color := reading(updates, dsl.Field("spec.size")).named("h"), reading(updates, dsl.Field("spec.color")).named("h")
	labels := reading(updates, dsl.Field("metadata.labels")).named("h")
	red, blue := object(1, "red"), object(1, "blue")
	tests := map[string]struct {
		was, is Handler
		now     map[string]any
		// moved: the generation is another one.
		moved, partial bool
		want           dsl.Cause
		old            any
	}{
		"the same view, and nothing changed":                               {size, size, red, false, false, "", nil},
		"the same view, and something changed elsewhere":                   {size, size, blue, true, false, "", nil},
		"the same view, which has changed":                                 {color, color, blue, true, false, dsl.Update, object(1, "red")["spec"].(map[string]any)["color"]},
		"another field that was kept wholly":                               {whole, color, blue, true, false, dsl.Update, "red"},
		"another field that was kept wholly, and has not changed":          {whole, size, blue, true, false, "", nil},
		"another field, and the generation is the same":                    {size, color, red, false, false, "", nil},
		"another field, and the generation is another":                     {size, color, red, true, false, dsl.Update, nil},
		"the whole instead of a field: labels have no generation":          {size, whole, red, false, false, dsl.Update, nil},
		"labels instead of a field: they have no generation":               {size, labels, red, false, false, dsl.Update, nil},
		"the whole spec, as it was, of another generation: it is run once": {spec, spec, red, true, false, dsl.Update, nil},
		"unless not all of the spec is seen":                               {spec, spec, red, true, true, "", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m := Moment{Look: NewSnapshot(tt.now), Generation: 3, Partial: tt.partial}
			if tt.moved {
				m.Generation = 4
			}
			b := Progress{UID: uid, Generation: 3}.handled(tt.was, red)
			got := reload(t, b, []Handler{tt.was}, red, []Handler{tt.is}, m)
			e, _ := got.Entry("h")
			if c := e.Due(tt.is.Handler, Facts{Now: m.Look.Digest(tt.is.View), Present: true, First: true}); c != tt.want {
				t.Errorf("it is due for %q, want %q", c, tt.want)
			}
			if tt.old == nil {
				return
			}
			if was, _ := dsl.MustParsePath("spec.color").In(oldOf(got, tt.is)); was != tt.old {
				t.Errorf("old is %v, want %v", was, tt.old)
			}
		})
	}
}

func TestHandlersThatTheBookDoesNotKnow(t *testing.T) {
	known, newer := reading(both).named("known"), reading(both).named("newer")
	red := object(1, "red")
	m := Moment{Look: NewSnapshot(red), Generation: 3}
	b := reload(t, Progress{UID: uid}.handled(known, red), []Handler{known}, red, []Handler{known, newer}, m)
	e, _ := b.Entry("newer")
	if f := (Facts{Now: m.Look.Digest(newer.View), Present: true, First: true}); e.Due(newer.Handler, f) != "" {
		t.Error("a handler that is new to a handled object has something to do")
	}
	fresh, _ := Load("", uid)
	e, _ = fresh.adapt([]Handler{newer}, m).Entry("newer")
	if f := (Facts{Now: m.Look.Digest(newer.View), Present: true, First: true, New: true}); e.Due(newer.Handler, f) != dsl.Create {
		t.Error("a new object is no create")
	}
}

func TestTriesAreReadBack(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	h := reading(both).named("h")
	snapshot := NewSnapshot(object(1, "red"))
	for name, try := range map[string]Record{
		"a retry":                       {Cause: dsl.Update, View: "v", Attempts: 2, Due: at, Message: "m", Step: 1},
		"that it waits with a new view": {Cause: dsl.Update, View: "v", Waiting: true, Message: "m"},
	} {
		t.Run(name, func(t *testing.T) {
			want := Entry{ViewName: "", Handled: snapshot.Digest(h.View), Try: try}
			got := reload(t, Progress{UID: uid}.With("h", want), []Handler{h}, object(1, "red"), []Handler{h}, Moment{Look: snapshot})
			e, _ := got.Entry("h")
			if diff := cmp.Diff(want, e, cmp.AllowUnexported(Entry{})); diff != "" {
				t.Errorf("the entry (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatIsNotStored holds that level-triggered handlers leave nothing on the object, nor does what happened
// beside it.
func TestWhatIsNotStored(t *testing.T) {
	for name, tt := range map[string]struct {
		reader Handler
		entry  Entry
	}{
		"what a level-triggered handler has seen": {reading(level), Entry{Handled: "x"}},
		"what it tries":                    {reading(level), Entry{Try: Record{Cause: dsl.Update, Attempts: 3}}},
		"a create that is still to come":   {reading(creates), Entry{}},
		"what a handler begins with":       {reading(updates), Entry{NewHandler: true}},
		"a try for a child":                {reading(creates), Entry{Try: Record{Cause: dsl.Child, Attempts: 3}}},
		"that one waits with a new object": {reading(creates), Entry{Try: Record{Cause: dsl.Create, Waiting: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := Progress{UID: uid}.With("h", tt.entry)
			if text, _, err := b.Encode([]Handler{tt.reader.named("h")}, NewSnapshot(nil), maxSize); text != "" || err != nil {
				t.Errorf("stored is %s, %v", text, err)
			}
			if mark := b.Mark([]Handler{tt.reader.named("h")}); mark != "" {
				t.Errorf("it is marked as something to store: %s", mark)
			}
		})
	}
}

func TestRoom(t *testing.T) {
	h := reading(updates).named("h")
	noise := make([]any, 60000)
	for i := range noise {
		noise[i] = fmt.Sprint(i * 7919)
	}
	full := map[string]any{"spec": noise}
	b := Progress{UID: uid}.handled(h, full)
	text, degraded, err := b.Encode([]Handler{h}, NewSnapshot(full), maxSize)
	if err != nil || !degraded || len(text) > 200 {
		t.Fatalf("%d bytes, degraded %v, %v", len(text), degraded, err)
	}
	got, err := Load(text, uid)
	if e, _ := got.Entry("h"); err != nil || e.Handled == "" || oldOf(got, h) != nil {
		t.Errorf("entry %+v, %v", e, err)
	}
	if _, _, err := b.Encode([]Handler{h}, NewSnapshot(full), 20); !errors.Is(err, errRoom) {
		t.Errorf("with room for nothing: %v", err)
	}
}

func TestLoad(t *testing.T) {
	h := reading(updates).named("h")
	for name, tt := range map[string]struct {
		text  string
		known bool
	}{
		"a text of this object":       {`{"handwerk":2,"uid":"0b1f","handlers":{"h":{"seen":"x"}}}`, true},
		"a text of another object":    {`{"handwerk":2,"uid":"other","handlers":{"h":{"seen":"x"}}}`, false},
		"a text that names no object": {`{"handwerk":2,"handlers":{"h":{"seen":"x"}}}`, false},
		"no text":                     {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := Load(tt.text, uid)
			if err != nil || b.Known != tt.known {
				t.Fatalf("known %v, %v", b.Known, err)
			}
			e, _ := b.adapt([]Handler{h}, Moment{Look: NewSnapshot(nil)}).Entry("h")
			if (e.Handled != "") != tt.known {
				t.Errorf("entry %+v", e)
			}
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"what is not JSON":            "{",
		"a later version":             `{"handwerk":3,"uid":"0b1f","handlers":{"h":{"seen":"x"}}}`,
		"an earlier version":          `{"handwerk":1,"uid":"0b1f","handlers":{"h":{"seen":"x"}}}`,
		"no version":                  `{"uid":"0b1f","handlers":{"h":{"seen":"x"}}}`,
		"a list where a map belongs":  `{"handwerk":2,"uid":"0b1f","handlers":[]}`,
		"somebody else's annotation ": `hello`,
	} {
		b, err := Load(text, uid)
		if err == nil || b.Known || b.UID != uid {
			t.Errorf("%s is read: %s", name, text)
		}
	}
}

func TestViews(t *testing.T) {
	o := map[string]any{
		"metadata": map[string]any{"name": "n", "resourceVersion": "7", "finalizers": []any{"f"}, "labels": map[string]any{"a": "b"}},
		"spec":     map[string]any{"size": int64(1)}, "status": map[string]any{"phase": "Ready"},
	}
	for path, want := range map[string]bool{
		"spec.size": true, "spec.none": false, "status.phase": true, "status.none": false,
		"metadata.labels.a": true, "metadata.annotations": false, "metadata.finalizers": true, "metadata": true,
	} {
		v := NewView(fields(path), Own{})
		if got := NewSnapshot(o).Exists(v); got != want {
			t.Errorf("%s is seen: %v, want %v", path, got, want)
		}
	}
	moved := map[string]any{"metadata": map[string]any{"name": "n", "resourceVersion": "8", "finalizers": []any{"f"}, "labels": map[string]any{"a": "b"}}}
	if meta := NewView(fields("metadata"), Own{}); NewSnapshot(o).Digest(meta) != NewSnapshot(moved).Digest(meta) {
		t.Error("the metadata is another with each version")
	}
	several := NewView(fields("status.phase", "spec.size", "spec.size"), Own{})
	if several.Name() != "spec.size,status.phase" {
		t.Errorf("several fields are named %s", several.Name())
	}
	want := map[string]any{"spec": map[string]any{"size": int64(1)}, "status": map[string]any{"phase": "Ready"}}
	if diff := cmp.Diff(want, NewSnapshot(o).Kept(several)); diff != "" {
		t.Errorf("what is kept of them (-want +got):\n%s", diff)
	}
}

// fields is the view of a handler that names these.
func fields(paths ...string) dsl.View {
	h := &dsl.Handler{}
	dsl.Field(paths...)(h)
	return h.View()
}

// TestFormerIds holds that an entry is found under an id that its handler had before, as long as there is room for both.
func TestFormerIds(t *testing.T) {
	now, was := reading(updates).named("b"), reading(updates).named("a")
	now.Was = []string{"a"}
	red, blue := object(1, strings.Repeat("red", 60)), object(1, strings.Repeat("blue", 60))
	other := reading(updates).named("other")
	b := Progress{UID: uid}.handled(other, blue).handled(now, red)
	handlers := []Handler{other, now}
	text, _, err := b.Encode(handlers, NewSnapshot(blue), maxSize)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		room     int
		former   bool
		degraded bool
	}{{len(text), true, false}, {len(text) - 1, false, false}, {160, true, true}, {120, false, true}} {
		got, degraded, err := b.Encode(handlers, NewSnapshot(blue), tt.room)
		if err != nil || degraded != tt.degraded || len(got) > tt.room {
			t.Fatalf("room for %d: %d bytes, degraded %v, %v", tt.room, len(got), degraded, err)
		}
		read, err := Load(got, uid)
		if err != nil {
			t.Fatal(err)
		}
		read = read.adapt([]Handler{other, was}, Moment{Look: NewSnapshot(blue)})
		e, _ := read.Entry("a")
		if former := e.Handled == NewSnapshot(red).Digest(was.View); former != tt.former {
			t.Errorf("room for %d: the entry under the former id is %+v", tt.room, e)
		}
		if old := oldOf(read, was); tt.former && !tt.degraded && !cmp.Equal(old, red) {
			t.Errorf("room for %d: under the former id old is %v", tt.room, old)
		}
	}
}
