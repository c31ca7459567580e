// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestRefusalsAreTakenInTheirOrder notes refusals, as in "a deploy" and, with a minus in front, their ends.
func TestRefusalsAreTakenInTheirOrder(t *testing.T) {
	tests := map[string]struct {
		notes  []string
		before string // for each note, whether the same one was refused before
		want   []string
	}{
		"one":                                        {[]string{"a deploy"}, "-", []string{"a deploy"}},
		"the same one twice":                         {[]string{"a deploy", "a deploy"}, "-+", []string{"a deploy"}},
		"two of a key":                               {[]string{"a deploy", "a store"}, "--", []string{"a deploy store"}},
		"two keys":                                   {[]string{"b deploy", "a deploy"}, "--", []string{"b deploy", "a deploy"}},
		"the first refusal of a key counts":          {[]string{"b deploy", "a deploy", "b store"}, "---", []string{"b deploy store", "a deploy"}},
		"one that is over":                           {[]string{"a deploy", "-a deploy"}, "-+", nil},
		"one of two is over":                         {[]string{"a deploy", "a store", "-a deploy"}, "--+", []string{"a store"}},
		"one that never was is over":                 {[]string{"-a deploy"}, "-", nil},
		"another handler's is over":                  {[]string{"a deploy", "-a store"}, "--", []string{"a deploy"}},
		"one that comes again is at the end":         {[]string{"b deploy", "a deploy", "-b deploy", "b deploy"}, "--+-", []string{"a deploy", "b deploy"}},
		"a key whose handlers change keeps its turn": {[]string{"b deploy", "a deploy", "b store", "-b deploy"}, "---+", []string{"b store", "a deploy"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r, before := &refusals{}, ""
			for _, note := range tt.notes {
				note, over := strings.CutPrefix(note, "-")
				key, who, _ := strings.Cut(note, " ")
				before += map[bool]string{true: "+", false: "-"}[r.note(Key{Name: key}, who, !over)]
			}
			var got []string
			r.take(func(key Key, who []string) { got = append(got, key.Name+" "+strings.Join(who, " ")) })
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" || before != tt.before {
				t.Errorf("refused before: %s, want %s; taken are (-want +got):\n%s", before, tt.before, diff)
			}
			r.take(func(key Key, _ []string) { t.Errorf("%s is taken twice", key.Name) })
		})
	}
}

// scribe keeps the lines that it is given, and has more to add meanwhile.
type scribe struct {
	Owner
	lines *lines
	wrote []string
}

func (s *scribe) LogWait(w Wait) {
	if s.wrote = append(s.wrote, w.Handler); w.Handler == "first" {
		s.lines.add(waitOf("third"))
	}
}

func waitOf(handler string) (w Wait) {
	w.Handler = handler
	return w
}

func TestLinesAreWrittenOnceInTheirOrder(t *testing.T) {
	s := &scribe{}
	s.lines = &lines{owner: s}
	s.lines.flush()
	s.lines.add(waitOf("first"))
	s.lines.add(waitOf("second"))
	for _, want := range [][]string{{"first", "second"}, {"first", "second", "third"}, {"first", "second", "third"}} {
		s.lines.flush()
		if diff := cmp.Diff(want, s.wrote); diff != "" {
			t.Errorf("written are (-want +got):\n%s", diff)
		}
	}
}
