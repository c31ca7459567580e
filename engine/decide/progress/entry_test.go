// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

// handler declares one handler and returns it.
func handler(causes []dsl.Cause, options ...dsl.Option) *dsl.Handler {
	r := dsl.New("test").Resource("foos.v1.example.com", nil)
	r.On(causes, "h", func(context.Context, *dsl.Request) error { return nil }, options...)
	return r.Handlers()[0]
}

// reading is a handler as progress know it.
func reading(causes []dsl.Cause, options ...dsl.Option) Handler {
	h := handler(causes, options...)
	return Handler{Handler: h, View: NewView(h.View(), Own{}), Old: WantsOld(h)}
}

var (
	creates = []dsl.Cause{dsl.Create}
	updates = []dsl.Cause{dsl.Update}
	both    = []dsl.Cause{dsl.Create, dsl.Update}
	level   = []dsl.Cause{dsl.Reconcile}
	deletes = []dsl.Cause{dsl.Delete}
	resumes = []dsl.Cause{dsl.Resume}
)

func TestDue(t *testing.T) {
	now, other := Facts{Now: "2", Present: true}, Facts{Now: "1", Present: true}
	first := Facts{Now: "2", Present: true, First: true}
	fresh := Facts{Now: "2", Present: true, First: true, New: true}
	bare := Facts{Now: "-"}
	leaving := Facts{Now: "2", Present: true, Deletion: "monday"}
	trying := func(c dsl.Cause, view string, attempts int) Record {
		return Record{Cause: c, View: view, Attempts: attempts}
	}
	left := func(deletion string, failed bool) Entry {
		return Entry{Try: Record{Cause: dsl.Delete, View: "2", Done: true, Failed: failed}, Deletion: deletion}
	}
	tests := map[string]struct {
		causes []dsl.Cause
		entry  Entry
		facts  Facts
		want   dsl.Cause
	}{
		"an unhandled object is a create":                              {creates, Entry{}, now, dsl.Create},
		"what one begins with is none":                                 {both, Entry{NewHandler: true}, now, ""},
		"an update handler has nothing to do before it has begun":      {updates, Entry{}, now, ""},
		"where there is nothing of the view nothing is created":        {creates, Entry{}, bare, ""},
		"what was handled is done":                                     {both, Entry{Handled: "2"}, now, ""},
		"what was handled otherwise is an update":                      {both, Entry{Handled: "2"}, other, dsl.Update},
		"for a handler of create alone it is nothing":                  {creates, Entry{Handled: "2"}, other, ""},
		"a view that goes away is an update":                           {updates, Entry{Handled: "2"}, bare, dsl.Update},
		"what failed for good is not tried again as it is":             {creates, Entry{Handled: "2", FailedFor: dsl.Create}, now, ""},
		"a create that failed for good is one again when it is mended": {creates, Entry{Handled: "2", FailedFor: dsl.Create}, other, dsl.Create},
		"a run that it asked for and that failed for good, too":        {creates, Entry{Handled: "2", FailedFor: dsl.Again}, other, dsl.Create},
		"and not where the handler has nothing to create":              {resumes, Entry{Handled: "2", FailedFor: dsl.Again}, other, ""},
		"with an update handler too, that is an update":                {both, Entry{Handled: "2", FailedFor: dsl.Create}, other, dsl.Update},
		"an object whose handled view is unknown is handled again":     {updates, Entry{Handled: rerun}, now, dsl.Update},
		"a change taken back that was begun with is undone":            {updates, Entry{Handled: "2", Try: trying(dsl.Update, "1", 1)}, now, dsl.Update},
		"one that was not begun with is none":                          {updates, Entry{Handled: "2", Try: trying(dsl.Update, "1", 0)}, now, ""},
		"a living object is nothing for delete handlers":               {deletes, Entry{}, now, ""},
		"a deletion is":                                                    {deletes, Entry{}, leaving, dsl.Delete},
		"a deletion is nothing for others":                                 {both, Entry{Handled: "1"}, leaving, ""},
		"one that was released is done":                                    {deletes, left("monday", false), leaving, ""},
		"one that was released at another time is not":                     {deletes, left("sunday", false), leaving, dsl.Delete},
		"one that failed for good is done":                                 {deletes, left("monday", true), leaving, ""},
		"until the object changes":                                         {deletes, left("monday", true), Facts{Now: "1", Deletion: "monday"}, dsl.Delete},
		"a level-triggered handler creates what is new":                    {level, Entry{}, fresh, dsl.Create},
		"it resumes what is not":                                           {level, Entry{}, first, dsl.Resume},
		"also where there is nothing of its view, for there may have been": {level, Entry{}, Facts{Now: "-", First: true}, dsl.Resume},
		"but creates nothing there":                                        {level, Entry{}, Facts{Now: "-", First: true, New: true}, ""},
		"what comes later is an update":                                    {level, Entry{}, now, dsl.Update},
		"it goes on with what it has begun":                                {level, Entry{Try: trying(dsl.Resume, "2", 1)}, now, dsl.Resume},
		"a change is an update for it":                                     {level, Entry{Handled: "2"}, other, dsl.Update},
		"no change is none":                                                {level, Entry{Handled: "2"}, now, ""},
		"what happened beside the object is gone on with":                  {level, Entry{Handled: "2", Try: trying(dsl.Child, "2", 1)}, now, dsl.Child},
		"a resume handler runs for what is found again":                    {resumes, Entry{}, first, dsl.Resume},
		"not for what is new":                                              {resumes, Entry{}, fresh, ""},
		"once in the life of a process":                                    {resumes, Entry{}, now, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.entry.Due(handler(tt.causes), tt.facts); got != tt.want {
				t.Errorf("Due() = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTries(t *testing.T) {
	h, at := reading(both), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := Facts{Now: "2", Present: true}
	failing := Entry{Handled: "1"}.Begin(dsl.Update, f)
	failing.Try = failing.Try.Fail(h.Handler, errors.New("no"), at)
	if got := failing.Begin(dsl.Update, f); got.Try.Attempts != 1 || got.Try.Due.IsZero() {
		t.Errorf("the same try does not go on: %+v", got.Try)
	}
	if got := failing.Begin(dsl.Update, Facts{Now: "3"}); got.Try.Attempts != 0 || !got.Try.Due.IsZero() {
		t.Errorf("another view does not cut the wait short: %+v", got.Try)
	}
	done := failing
	done.Try = failing.Try.Succeed()
	if diff := cmp.Diff(Entry{Handled: "4"}, done.End(h.View, "4", nil), cmp.AllowUnexported(Entry{})); diff != "" {
		t.Errorf("after a success (-want +got):\n%s", diff)
	}
	lost := failing
	lost.Try = failing.Try.Fail(h.Handler, dsl.Permanent(errors.New("never")), at)
	end := lost.End(h.View, "2", nil)
	if end.Handled != "2" || end.FailedFor != dsl.Update || end.Try.Message != "never" {
		t.Errorf("after failing for good: %+v", end)
	}
	if again := end.Retry(); again.Due(h.Handler, f) != dsl.Update || again.FailedFor != "" {
		t.Errorf("once more: %+v", again)
	}
}

// TestCorrected holds that what the server made of a handler's own change is no news for it, and that what
// others changed is.
func TestCorrected(t *testing.T) {
	r := reading(both, dsl.Field("spec.size"))
	snapshot := func(size int64) *Snapshot { return NewSnapshot(map[string]any{"spec": map[string]any{"size": size}}) }
	own := Entry{Handled: snapshot(7).Digest(r.View)}.Corrected(snapshot(7).Digest(r.View), snapshot(8), r)
	if own.Handled != snapshot(8).Digest(r.View) {
		t.Error("the server's answer is not entered")
	}
	other := Entry{Handled: snapshot(5).Digest(r.View)}
	if got := other.Corrected(snapshot(7).Digest(r.View), snapshot(8), r); got.Handled != other.Handled {
		t.Error("what the handler has not seen is entered as seen")
	}
}

// TestABookHoldsEntriesWhole holds that what progress keeps of an entry is all of it, whether its handler is at rest or not.
func TestABookHoldsEntriesWhole(t *testing.T) {
	tests := map[string]struct {
		entry Entry
		rests bool
	}{
		"nothing":                         {Entry{}, true},
		"what was handled":                {Entry{ViewName: "spec", Handled: "d", AsFound: true}, true},
		"a try":                           {Entry{Handled: "d", Try: Record{Cause: dsl.Update, Attempts: 2, Message: "no"}}, false},
		"a failure for good":              {Entry{Handled: "d", FailedFor: dsl.Update}, false},
		"a deletion":                      {Entry{Handled: "d", Deletion: "then"}, false},
		"one that begins":                 {Entry{NewHandler: true}, false},
		"one that is to create":           {Entry{NewObject: true}, false},
		"one that need not be stored":     {Entry{Handled: "d", Implied: true}, false},
		"one about which nothing is kept": {Entry{Handled: "d", OldDropped: true}, false},
		"one with stored state":           {Entry{Handled: "d", Old: map[string]any{}}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := Progress{}.With("other", Entry{Handled: "o"}).With("h", Entry{Handled: "before"}).With("h", tt.entry)
			got, found := b.Entry("h")
			if diff := cmp.Diff(tt.entry, got); diff != "" || !found {
				t.Errorf("entry (-want +got):\n%s", diff)
			}
			if rests := b.entries[1].whole == nil; rests != tt.rests {
				t.Errorf("it is kept as that of a handler at rest: %t, want %t", rests, tt.rests)
			}
		})
	}
}
