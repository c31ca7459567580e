// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestChooses holds that an object must fulfil every filter on labels and annotations.
func TestChooses(t *testing.T) {
	object := &metav1.ObjectMeta{Labels: map[string]string{"tier": "web", "team": "a"}, Annotations: map[string]string{"pause": ""}}
	tests := map[string]struct {
		handler dsl.Handler
		want    bool
	}{
		"without any": {dsl.Handler{}, true},
		"all hold": {dsl.Handler{
			Labels: []dsl.Match{{Key: "tier", Value: "web"}, {Key: "team", Op: dsl.Exists}}, Annotations: []dsl.Match{{Key: "pause", Op: dsl.Exists}},
		}, true},
		"the last label does not hold":      {dsl.Handler{Labels: []dsl.Match{{Key: "tier", Value: "web"}, {Key: "team", Op: dsl.Absent}}}, false},
		"an annotation alone does not hold": {dsl.Handler{Labels: []dsl.Match{{Key: "tier", Value: "web"}}, Annotations: []dsl.Match{{Key: "pause", Op: dsl.Absent}}}, false},
		"a label is no annotation":          {dsl.Handler{Annotations: []dsl.Match{{Key: "tier", Value: "web"}}}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Chooses(&tt.handler, object); got != tt.want {
				t.Errorf("the filters choose the object: %t, want %t", got, tt.want)
			}
		})
	}
}

// TestWhatIsToldOnce holds that the same words are news once for a handler, whatever its filter is asked for, and that
// it can be asked again is news when all of them are over.
func TestWhatIsToldOnce(t *testing.T) {
	h := &dsl.Handler{ID: "h"}
	update, deletion := Question{h, dsl.Update}, Question{h, dsl.Delete}
	said := func(text string) Answer { return Answer{Err: errors.New(text)} }
	var f Faults
	if f.Failed(update, said("no such key")) {
		t.Error("a first failure was known")
	}
	if !f.Failed(deletion, said("no such key")) {
		t.Error("the same words are news when the filter is asked for a deletion")
	}
	if f.Failed(update, said("other")) {
		t.Error("other words were known")
	}
	f.Failed(update, said("no such key"))
	if f.Answered(update) {
		t.Error("it is mended, and cannot be asked for a deletion")
	}
	if !f.Answered(deletion) {
		t.Error("it is not mended when it can be asked for all")
	}
	if f.Answered(deletion) {
		t.Error("it is mended twice")
	}
}

// TestWhyAHandlerIsBlind holds what is said of a handler whose filter failed.
func TestWhyAHandlerIsBlind(t *testing.T) {
	h, other := &dsl.Handler{ID: "h"}, &dsl.Handler{ID: "other"}
	tests := map[string]struct {
		of   *dsl.Handler
		c    dsl.Cause
		a    Answer
		want string
	}{
		"the error":                              {h, dsl.Update, Answer{Err: errors.New("no such key")}, "no such key"},
		"the error of a deletion":                {h, dsl.Delete, Answer{Err: errors.New("no such key")}, "no such key"},
		"nothing, where it may read in a moment": {h, dsl.Update, Answer{Err: errors.New("not listed"), Unread: true}, ""},
		"nothing of another handler's":           {other, dsl.Update, Answer{Err: errors.New("no such key")}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var f Faults
			f.Failed(Question{tt.of, tt.c}, tt.a)
			if got := f.Of(h); got != tt.want {
				t.Errorf("it says %q, want %q", got, tt.want)
			}
		})
	}
}

// TestAnswersAreKept holds that an answer is there until the filters are to be asked once more, and that a doubt stays.
func TestAnswersAreKept(t *testing.T) {
	q := Question{&dsl.Handler{ID: "h"}, dsl.Delete}
	var a Answers
	if _, asked := a.Known(q); asked || a.Unsure() {
		t.Error("an answer is known before anybody was asked")
	}
	a.Note(q, Answer{Err: errors.New("no such key")})
	a.Doubt()
	if got, asked := a.Known(q); !asked || got.Holds || !got.Keeps() {
		t.Errorf("the answer is %+v, known: %v", got, asked)
	}
	if _, asked := a.Known(Question{q.Handler, dsl.Update}); asked {
		t.Error("the answer is also that for another cause")
	}
	a.Reset()
	if _, asked := a.Known(q); asked || !a.Unsure() {
		t.Error("after a reset the answer is known, or the doubt is gone")
	}
}
