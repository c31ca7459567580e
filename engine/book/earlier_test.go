// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestOldOfNothing holds that what a handler has handled is known where that was nothing, and where nulls were
// among it, also where no more than that it is undone is known.
func TestOldOfNothing(t *testing.T) {
	note, whole := reading(updates, dsl.Field("spec.note")).named("h"), reading(updates).named("h")
	conf := reading(updates, dsl.Field("spec.conf")).named("h")
	nothing, nulls := map[string]any{}, map[string]any{"spec": map[string]any{"conf": map[string]any{"a": nil, "b": int64(1)}}}
	for name, tt := range map[string]struct {
		reader    Reader
		was, want map[string]any
	}{
		"a field that was not there": {note, object(1, "red"), nothing},
		"an object of nothing":       {whole, nothing, nothing},
		"a null below a field":       {conf, nulls, nulls},
	} {
		for _, seen := range []string{"", anew} {
			t.Run(name+seen, func(t *testing.T) {
				b := Book{UID: uid}.handled(tt.reader, tt.was)
				if seen != "" {
					e, _ := b.Entry("h")
					e.Seen = seen
					b = b.With("h", e)
				}
				now := map[string]any{"spec": map[string]any{"note": "x", "conf": "y"}}
				got := reload(t, b, []Reader{tt.reader}, now, []Reader{tt.reader}, Moment{Look: NewLook(now)})
				if diff := cmp.Diff(tt.want, oldOf(got, tt.reader)); diff != "" {
					t.Errorf("old (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestOldOfEarlierTexts holds that what was left out of texts of earlier releases, for it was empty, is not known.
func TestOldOfEarlierTexts(t *testing.T) {
	h := reading(updates, dsl.Field("spec.note")).named("h")
	for seen, known := range map[string]bool{anew: false, "-": true} {
		text := `{"handwerk":2,"uid":"0b1f","handlers":{"h":{"of":"spec.note","seen":"` + seen + `"}},"fields":["spec.note"]}`
		b, err := Load(text, uid, nil)
		if err != nil {
			t.Fatal(err)
		}
		if old := oldOf(b.Meet([]Reader{h}, Moment{Look: NewLook(object(1, "red"))}), h); (old != nil) != known {
			t.Errorf("of what was seen as %s is known %v", seen, old)
		}
	}
}

// TestBooksWithTheOwnFinalizer holds that what an earlier release has handled is handled, though the operator's own
// finalizer was in its digest.
func TestBooksWithTheOwnFinalizer(t *testing.T) {
	held := func(finalizers ...any) map[string]any {
		return map[string]any{"metadata": map[string]any{"finalizers": finalizers}}
	}
	for name, tt := range map[string]struct {
		field    string
		was, now map[string]any
		want     dsl.Cause
	}{
		"the same finalizers":              {"metadata.finalizers", held("own", "other"), held("own", "other"), ""},
		"the own one alone":                {"metadata.finalizers", held("own"), held("own"), ""},
		"the same metadata":                {"metadata", held("own"), held("own"), ""},
		"another one":                      {"metadata.finalizers", held("own"), held("own", "other"), dsl.Update},
		"another one in place of an other": {"metadata.finalizers", held("own", "a"), held("own", "b"), dsl.Update},
	} {
		t.Run(name, func(t *testing.T) {
			was := reading(updates, dsl.Field(tt.field)).named("h")
			is := was
			is.View = NewView(is.Handler.View(), Own{Finalizer: "own"})
			look := NewLook(tt.now)
			got := reload(t, Book{UID: uid}.handled(was, tt.was), []Reader{was}, tt.was, []Reader{is}, Moment{Look: look})
			e, _ := got.Entry("h")
			if c := e.Due(is.Handler, Facts{Now: look.Digest(is.View), Present: true, First: true}); c != tt.want {
				t.Errorf("it is due for %q, want %q", c, tt.want)
			}
			if old := oldOf(got, is); old == nil {
				t.Error("nothing is known of what it has handled")
			}
		})
	}
}
