// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/children"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// handled is the entry of a handler that has handled what it looks at now.
func handled() progress.Entry { return progress.Entry{ViewName: "essence", Handled: "now"} }

// failing is a record of a handler that has failed once for a cause, and waits for its next try.
func failing(c dsl.Cause) progress.Record {
	return progress.Record{Cause: c, View: "now", Attempts: 1, Due: noon.Add(time.Hour)}
}

// TestWhatAHandlerRunsFor holds what a handler is to run for, by what has come up.
func TestWhatAHandlerRunsFor(t *testing.T) {
	all := []dsl.Cause{dsl.Create, dsl.Update, dsl.Child, dsl.RelatedChange, dsl.Timer, dsl.Resync}
	tests := map[string]struct {
		causes []dsl.Cause
		entry  progress.Entry
		s      Situation
		want   dsl.Cause
	}{
		"an object that it has not handled":                 {all, progress.Entry{}, Situation{}, dsl.Create},
		"what it has handled":                               {all, handled(), Situation{}, ""},
		"another view than it has handled":                  {all, progress.Entry{Handled: "before"}, Situation{}, dsl.Update},
		"a child that has changed":                          {all, handled(), Situation{Child: true}, dsl.Child},
		"the same for one that does not run for children":   {[]dsl.Cause{dsl.Update}, handled(), Situation{Child: true}, ""},
		"being named":                                       {all, handled(), Situation{Named: true}, dsl.Child},
		"being named, for one that runs at resyncs":         {[]dsl.Cause{dsl.Resync}, handled(), Situation{Named: true}, dsl.Resync},
		"related objects that have changed":                 {all, handled(), Situation{Related: true}, dsl.RelatedChange},
		"a timer":                                           {all, handled(), Situation{Fires: true}, dsl.Timer},
		"a timer, beside a change":                          {all, progress.Entry{Handled: "before"}, Situation{Fires: true}, dsl.Update},
		"the resync period":                                 {all, handled(), Situation{Resync: true}, dsl.Resync},
		"a child and the resync period":                     {all, handled(), Situation{Child: true, Resync: true}, dsl.Child},
		"a child of an object that is being deleted":        {all, handled(), Situation{Child: true, Facts: progress.Facts{Deletion: "d"}}, ""},
		"a deletion":                                        {[]dsl.Cause{dsl.Delete}, progress.Entry{}, Situation{Facts: progress.Facts{Deletion: "d"}}, dsl.Delete},
		"a deletion, when others alone hold the object":     {[]dsl.Cause{dsl.Delete}, progress.Entry{}, Situation{Released: true, Facts: progress.Facts{Deletion: "d"}}, ""},
		"a deletion that it is through with":                {[]dsl.Cause{dsl.Delete}, progress.Entry{Deletion: "d", Try: progress.Record{Cause: dsl.Delete, Done: true}}, Situation{Facts: progress.Facts{Deletion: "d"}}, ""},
		"being found while it is being deleted":             {[]dsl.Cause{dsl.Resume}, progress.Entry{}, Situation{Facts: progress.Facts{Deletion: "d", First: true}}, dsl.Resume},
		"being found when it is gone already":               {[]dsl.Cause{dsl.Resume}, progress.Entry{}, Situation{Gone: true, Facts: progress.Facts{Deletion: "d", First: true}}, ""},
		"an earlier deletion that it is through with":       {[]dsl.Cause{dsl.Delete}, progress.Entry{Deletion: "c", Try: progress.Record{Cause: dsl.Delete, Done: true}}, Situation{Facts: progress.Facts{Deletion: "d"}}, dsl.Delete},
		"a living object after a deletion that was no more": {[]dsl.Cause{dsl.Delete}, progress.Entry{Deletion: "d", Try: progress.Record{Cause: dsl.Delete}}, Situation{}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := &dsl.Handler{ID: "h", Causes: tt.causes, Deleted: true}
			s := tt.s
			s.At, s.Now, s.Present, s.Chosen = noon, "now", true, true
			if e, got := Decide(h, tt.entry, s); got != tt.want {
				t.Errorf("it runs for %q, want %q; its entry is %+v", got, tt.want, e)
			}
		})
	}
}

// TestWhatEndsAWait holds when a handler that has failed may try again at once.
func TestWhatEndsAWait(t *testing.T) {
	tests := map[string]struct {
		s     Situation
		reads dsl.KnownReads
		waits bool
	}{
		"nothing has come up":  {Situation{}, dsl.KnownReads{}, true},
		"a child has changed":  {Situation{Child: true}, dsl.KnownReads{}, false},
		"related objects have": {Situation{Related: true}, dsl.KnownReads{}, false},
		"a right was given":    {Situation{Granted: true}, dsl.KnownReads{}, false},
		"in a deletion a child that it is not known to read":  {Situation{Child: true, Facts: progress.Facts{Deletion: "d"}}, dsl.KnownReads{}, true},
		"in a deletion a child that it is known to read":      {Situation{Child: true, Facts: progress.Facts{Deletion: "d"}}, dsl.KnownReads{Children: true}, false},
		"in a deletion related objects that it does not read": {Situation{Related: true, Facts: progress.Facts{Deletion: "d"}}, dsl.KnownReads{Children: true}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := dsl.Update
			h := &dsl.Handler{ID: "h", Causes: []dsl.Cause{dsl.Update, dsl.Child, dsl.RelatedChange, dsl.Delete}, Known: dsl.Known{Reads: tt.reads}}
			if tt.s.Deletion != "" {
				c = dsl.Delete
			}
			s := tt.s
			s.At, s.Now, s.Present, s.Chosen = noon, "now", true, true
			e, _ := Decide(h, progress.Entry{Handled: "before", Deletion: s.Deletion, Try: failing(c)}, s)
			if got := e.Try.Remaining(noon) > 0; got != tt.waits {
				t.Errorf("it waits: %v, want %v; its try is %+v", got, tt.waits, e.Try)
			}
		})
	}
}

// TestWhatIsEntered holds what becomes of an entry when its handler has nothing to do.
func TestWhatIsEntered(t *testing.T) {
	level := &dsl.Handler{ID: "h", Causes: dsl.ReconcileCauses()}
	edge := &dsl.Handler{ID: "h", Causes: []dsl.Cause{dsl.Update}}
	waiting := progress.Record{Cause: dsl.Update, View: "now", Waiting: true, Due: noon.Add(time.Hour)}
	parted := progress.Entry{Handled: "now", Deletion: "d", Try: progress.Record{Cause: dsl.Delete, Done: true}}
	tests := map[string]struct {
		h    *dsl.Handler
		e    progress.Entry
		s    Situation
		want progress.Entry
	}{
		"nothing, when nothing has come up":                            {level, handled(), Situation{Chosen: true}, handled()},
		"that a level-triggered one runs when it sees the object":      {level, handled(), Situation{}, handled().FilteredOut()},
		"nothing, for an edge-triggered one that does not see it":      {edge, handled(), Situation{}, handled()},
		"that nothing is done for a deletion, of an object that lives": {edge, parted, Situation{Chosen: true}, progress.Entry{Handled: "now"}},
		"that a wait is over, when related objects have changed": {
			edge, progress.Entry{Handled: "now", Try: waiting}, Situation{Chosen: true, Related: true},
			progress.Entry{Handled: "now", Try: progress.Record{Cause: dsl.Update, View: "now", Waiting: true}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := tt.s
			s.At, s.Now, s.Present = noon, "now", true
			e, c := Decide(tt.h, tt.e, s)
			if diff := cmp.Diff(tt.want, e); diff != "" || c != "" {
				t.Errorf("it runs for %q, and its entry is another one (-want +got):\n%s", c, diff)
			}
		})
	}
}

// TestStepsBeginAgain holds when a handler that is made of steps begins with its first one again.
func TestStepsBeginAgain(t *testing.T) {
	h := &dsl.Handler{ID: "h", Causes: []dsl.Cause{dsl.Update, dsl.Child}}
	half := progress.Entry{Handled: "before", Try: progress.Record{Cause: dsl.Update, View: "now", Step: 2}}
	for name, tt := range map[string]struct {
		s    Situation
		want int
	}{
		"nothing beside the object has changed":    {Situation{}, 2},
		"a child has":                              {Situation{Child: true}, 0},
		"this process has not looked at it":        {Situation{Unseen: true}, 0},
		"related objects that it does not run for": {Situation{Related: true}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := tt.s
			s.At, s.Now, s.Present, s.Chosen = noon, "now", true, true
			if e, _ := Decide(h, half, s); e.Try.Step != tt.want {
				t.Errorf("it goes on with step %d, want %d", e.Try.Step, tt.want)
			}
		})
	}
}

// TestWhatBecomesOfTheFinalizer holds what settles an object.
func TestWhatBecomesOfTheFinalizer(t *testing.T) {
	tests := map[string]struct {
		e    Ending
		want Finalization
	}{
		"an object without finalizers":                           {Ending{}, Finalization{}},
		"one that a handler holds":                               {Ending{Wanted: true}, Finalization{Add: true}},
		"one that is held already":                               {Ending{Wanted: true, Finalizer: true}, Finalization{}},
		"one that is not held any more":                          {Ending{Finalizer: true}, Finalization{Remove: true}},
		"a deletion that handlers are through with":              {Ending{Deleted: true, Finalizer: true}, Finalization{Finalized: true, Remove: true}},
		"one that a handler is at":                               {Ending{Deleted: true, Finalizer: true, Open: true}, Finalization{}},
		"one where a handler has failed for good":                {Ending{Deleted: true, Finalizer: true, Failed: true}, Finalization{Held: true}},
		"one whose filter cannot be evaluated":                   {Ending{Deleted: true, Finalizer: true, Unsure: true}, Finalization{Held: true}},
		"an object that is gone":                                 {Ending{Gone: true, Deleted: true}, Finalization{Finalized: true, Remove: true}},
		"one that is gone, while a handler is at it":             {Ending{Gone: true, Deleted: true, Open: true}, Finalization{}},
		"one that is gone, with a handler that failed for good":  {Ending{Gone: true, Deleted: true, Failed: true}, Finalization{Finalized: true}},
		"one that is gone, and whose filter cannot be evaluated": {Ending{Gone: true, Deleted: true, Unsure: true}, Finalization{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Settle(tt.e)); diff != "" {
				t.Errorf("it is settled otherwise (-want +got):\n%s", diff)
			}
		})
	}
}

// attemptsOf are attempts of handlers by their names.
func attemptsOf(js ...*Attempt) (out Attempts, readers []progress.Handler) {
	for _, j := range js {
		out, readers = append(out, j), append(readers, j.Reader)
	}
	return out, readers
}

func attemptOf(id string, c dsl.Cause, causes ...dsl.Cause) *Attempt {
	return &Attempt{Reader: progress.Handler{Handler: &dsl.Handler{ID: id, Causes: causes}}, Cause: c}
}

// TestWhoIsStirred holds that those that look at children run again for what others wrote to them later in the reconcile, and
// not for what they wrote themselves, or have seen.
func TestWhoIsStirred(t *testing.T) {
	looks, writes := attemptOf("looks", dsl.Update, dsl.Update, dsl.Child), attemptOf("writes", dsl.Update, dsl.Update, dsl.Child)
	looks.Ran, writes.Ran = true, true
	tests := map[string]struct {
		attempts []*Attempt
		write    children.Write
		want     []string
	}{
		"a child, after the one that looks has run":  {[]*Attempt{looks, writes}, children.Write{Child: true, Handler: "writes", Turn: 2}, []string{"looks"}},
		"a child, before it runs":                    {[]*Attempt{writes, looks}, children.Write{Child: true, Handler: "writes", Turn: 1}, nil},
		"another object":                             {[]*Attempt{looks, writes}, children.Write{Handler: "writes", Turn: 2}, nil},
		"a child, by the only one that runs for any": {[]*Attempt{writes}, children.Write{Child: true, Handler: "writes", Turn: 1}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			attempts, readers := attemptsOf(tt.attempts...)
			if diff := cmp.Diff(tt.want, attempts.Rerun(readers, []children.Write{tt.write, tt.write})); diff != "" {
				t.Errorf("others are rerun (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatIsNoLoop holds what a reconcile may write again and again.
func TestWhatIsNoLoop(t *testing.T) {
	status, spec := dsl.NewPatch(), dsl.NewPatch()
	status.SetStatus("phase", "Ready")
	spec.Set("spec.size", int64(2))
	wrote := []children.Write{{Child: true, Handler: "h"}}
	tests := map[string]struct {
		cause  dsl.Cause
		wants  *dsl.Patch
		writes []children.Write
		driven bool
	}{
		"a timer's write":                         {dsl.Timer, spec, wrote, true},
		"the status after a child's change":       {dsl.Child, status, nil, true},
		"the spec after a child's change":         {dsl.Child, spec, nil, false},
		"a child after a child's change":          {dsl.Child, status, wrote, false},
		"the status after a change of the object": {dsl.Update, status, nil, false},
		"nothing after a change of the object":    {dsl.Update, nil, nil, true},
		"a child after a related object's change": {dsl.RelatedChange, nil, wrote, false},
		"another handler's write, after a change": {dsl.Update, nil, []children.Write{{Child: true, Handler: "other"}}, true},
		"anything at a resync":                    {dsl.Resync, spec, wrote, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			j := attemptOf("h", tt.cause, tt.cause)
			j.Ran, j.Wants = true, tt.wants
			if got := (Attempts{j}).Driven(tt.writes, true); got != tt.driven {
				t.Errorf("it goes its own way: %v, want %v", got, tt.driven)
			}
		})
	}
}

// TestWhatIsStillToCome holds what of attempts is retried, and what keeps a deletion open.
func TestWhatIsStillToCome(t *testing.T) {
	fails := attemptOf("h", dsl.Update, dsl.Update)
	fails.Ran, fails.Record = true, progress.Record{Cause: dsl.Update}.Fail(&dsl.Handler{Retries: dsl.Unlimited}, dsl.Temporary(errors.New("later"), time.Hour), noon)
	done := attemptOf("h", dsl.Update, dsl.Update)
	done.Ran, done.Record = true, progress.Record{Cause: dsl.Update}.Succeed()
	child := attemptOf("h", dsl.Child, dsl.Child)
	child.Ran, child.Record = true, fails.Record
	deletes := attemptOf("h", dsl.Delete, dsl.Delete)
	tests := map[string]struct {
		attempts Attempts
		retries  bool
		latest   time.Time
		open     bool
		// covered: what is gone stays open, as somebody has not heard of it.
		covered bool
	}{
		"nothing":                   {},
		"a handler that has failed": {attempts: Attempts{fails}, retries: true, latest: noon.Add(time.Hour)},
		"one that is done":          {attempts: Attempts{done}},
		"one that failed for a child, without a stored cause": {attempts: Attempts{child}},
		"a delete handler that has not begun":                 {attempts: Attempts{deletes}, open: true},
		"a handler of events that has failed":                 {attempts: Attempts{attemptOf("h", dsl.Event, dsl.Event)}, covered: true},
		"several":                                             {attempts: Attempts{done, fails, deletes}, retries: true, latest: noon.Add(time.Hour), open: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			retries, latest := tt.attempts.Retries()
			if retries != tt.retries || !latest.Equal(tt.latest) {
				t.Errorf("it is tried again: %v, at %v; want %v, %v", retries, latest, tt.retries, tt.latest)
			}
			if open := tt.attempts.Open(false); open != tt.open {
				t.Errorf("a deletion is open: %v, want %v", open, tt.open)
			}
			if open := tt.attempts.Open(true); open != (tt.open || tt.covered) {
				t.Errorf("what is gone is open: %v, want %v", open, tt.open || tt.covered)
			}
		})
	}
}

// TestWhatIsSaidOfAFailure holds the reason and the words of an Event.
func TestWhatIsSaidOfAFailure(t *testing.T) {
	again, failed := progress.Record{Attempts: 3, Message: "No route"}, progress.Record{Attempts: 1, Done: true, Failed: true, Message: "No route"}
	tests := map[string]struct {
		cause   dsl.Cause
		record  progress.Record
		release bool
		gone    bool
		reason  string
		note    string
	}{
		"it is tried again":                {dsl.Update, again, false, false, "HandlerFailing", "Handler h keeps failing, and is tried again: No route"},
		"it has failed for good":           {dsl.Update, failed, false, false, "HandlerFailed", "Handler h failed for good after 1 attempt: No route"},
		"it holds a deletion":              {dsl.Delete, again, false, false, "DeletionHeld", "Deletion is held: handler h keeps failing, and is tried again: No route"},
		"it lets go of what it fails with": {dsl.Delete, failed, true, false, "HandlerFailed", "Handler h failed for good after 1 attempt: No route"},
		"what it fails with is gone":       {dsl.Delete, failed, false, true, "HandlerFailed", "Handler h failed for good after 1 attempt: No route"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			j := attemptOf("h", tt.cause, tt.cause)
			j.Reader.Release = tt.release
			a := Ended{Handler: j.Reader.Handler, Cause: j.Cause, Trouble: &Trouble{After: tt.record}}
			if reason, note := a.complaint(tt.gone); reason != tt.reason || note != tt.note {
				t.Errorf("it says %s: %s\nwant %s: %s", reason, note, tt.reason, tt.note)
			}
		})
	}
}

// TestHowAHandlerFares holds that a handler which has nothing to do has failed for good, or has not failed.
func TestHowAHandlerFares(t *testing.T) {
	busy := attemptOf("busy", dsl.Update, dsl.Update)
	busy.Record = progress.Record{Cause: dsl.Update, Attempts: 2}
	rests := attemptOf("rests", dsl.Update, dsl.Update).Reader
	tests := map[string]struct {
		reader progress.Handler
		entry  progress.Entry
		want   progress.Record
	}{
		"one that has something to do":         {busy.Reader, handled(), busy.Record},
		"one that rests":                       {rests, handled(), progress.Record{}},
		"one that is not to be tried any more": {rests, progress.Entry{Handled: "now", Try: failing(dsl.Child)}, progress.Record{Message: failing(dsl.Child).Message}},
		"one that failed for good":             {rests, progress.Entry{Handled: "now", FailedFor: dsl.Update, Try: progress.Record{Failed: true, Message: "No"}}, progress.Record{Failed: true, Message: "No"}},
		"one of an earlier process that did":   {rests, progress.Entry{Handled: "now", FailedFor: dsl.Update}, progress.Record{Failed: true, Message: "it failed for good"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Attempts{busy}.Record(tt.reader, tt.entry)); diff != "" {
				t.Errorf("it fares otherwise (-want +got):\n%s", diff)
			}
		})
	}
}
