// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"errors"
	"testing"
	"time"

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
			if got := Matches(&tt.handler, object); got != tt.want {
				t.Errorf("the filters choose the object: %t, want %t", got, tt.want)
			}
		})
	}
}

// TestATextIsReportedOnce holds that the same words are news once for a handler, whatever its filter is asked for, and that
// it can be asked again is news when all of them are over.
func TestATextIsReportedOnce(t *testing.T) {
	h := &dsl.Handler{ID: "h"}
	update, deletion := Question{Handler: h, Cause: dsl.Update}, Question{Handler: h, Cause: dsl.Delete}
	said := func(text string) Answer { return Answer{Err: errors.New(text)} }
	var f Faults
	failed := func(q Question, a Answer) bool {
		before, _ := f.Failed(q, a, at(1))
		return before
	}
	mended := func(q Question) bool {
		f.Answered(q)
		return len(f.Recovered()) > 0
	}
	if failed(update, said("no such key")) {
		t.Error("a first failure was known")
	}
	if !failed(deletion, said("no such key")) {
		t.Error("the same words are news when the filter is asked for a deletion")
	}
	if failed(update, said("other")) {
		t.Error("other words were known")
	}
	failed(update, said("no such key"))
	f.Begin()
	if mended(update) {
		t.Error("it is mended, and cannot be asked for a deletion")
	}
	failed(deletion, said("no such key"))
	if mended(deletion) {
		t.Error("it is mended by an answer for another cause in the pass in which it failed")
	}
	f.Begin()
	f.Answered(deletion)
	if !failed(deletion, said("no such key")) || len(f.Recovered()) > 0 {
		t.Error("a failure after an answer in the same pass is news, or the filter is mended")
	}
	f.Begin()
	if !mended(deletion) {
		t.Error("it is not mended when it can be asked for all")
	}
	if mended(deletion) {
		t.Error("it is mended twice")
	}
}

// at is a moment so many seconds after the first, with a back-off of that many seconds as there were failures.
func at(second int) Moment {
	begun := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	return Moment{Now: begun.Add(time.Duration(second) * time.Second), Backoff: func(n int) time.Duration { return time.Duration(n) * time.Second }}
}

// TestWhenAFilterIsAskedAgain holds how the back-off of a filter grows, and when it begins again.
func TestWhenAFilterIsAskedAgain(t *testing.T) {
	q := Question{Handler: &dsl.Handler{ID: "h"}, Cause: dsl.Update}
	var f Faults
	for _, step := range []struct {
		second int
		view   string
		want   int
		why    string
	}{
		{0, "a", 1, "the first failure"},
		{0, "a", 1, "another failure in the same pass changes nothing"},
		{1, "a", 3, "the next failure has a longer one"},
		{2, "a", 3, "a failure before its time changes nothing"},
		{3, "a", 6, "nor does it count for the next one"},
		{4, "b", 5, "with another view it begins again"},
	} {
		m := at(step.second)
		m.View = step.view
		if _, again := f.Failed(q, Answer{Err: errors.New("no")}, m); !again.Equal(at(step.want).Now) {
			t.Errorf("%s: it is asked again at %v, want second %d", step.why, again, step.want)
		}
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
			f.Failed(Question{Handler: tt.of, Cause: tt.c}, tt.a, at(1))
			if got := f.Of(h); got != tt.want {
				t.Errorf("it says %q, want %q", got, tt.want)
			}
		})
	}
}

// TestAnswersAreKept holds that an answer is there until the filters are to be asked once more, and that a doubt stays.
func TestAnswersAreKept(t *testing.T) {
	q := Question{Handler: &dsl.Handler{ID: "h"}, Cause: dsl.Delete}
	var a Answers
	if _, asked := a.Known(q); asked || a.Unsure() {
		t.Error("an answer is known before anybody was asked")
	}
	a.Note(q, Answer{Err: errors.New("no such key")})
	a.SetUnsure()
	if got, asked := a.Known(q); !asked || got.Holds || !got.Keeps() {
		t.Errorf("the answer is %+v, known: %v", got, asked)
	}
	if _, asked := a.Known(Question{Handler: q.Handler, Cause: dsl.Update}); asked {
		t.Error("the answer is also that for another cause")
	}
	a.Reset()
	if _, asked := a.Known(q); asked || !a.Unsure() {
		t.Error("after a reset the answer is known, or the doubt is gone")
	}
}
