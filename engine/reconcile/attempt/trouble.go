// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// Troubles are logged failures that are not over. The zero value is empty.
type Troubles struct{ by map[string]*trouble }

type trouble struct {
	begun  time.Time
	failed int
	// works: the handler has succeeded, and its changes are not written yet. After that, log gets the line that the
	// failure is over.
	works bool
	log   logr.Logger
	voice Voice
}

// Failed counts a failure of a handler. Once one is logged, the log will also have its end.
func (t *Troubles) Failed(who string, logged bool) {
	switch known := t.by[who]; {
	case known != nil:
		known.failed, known.works = known.failed+1, false
	case logged && t.by == nil:
		t.by = map[string]*trouble{who: {begun: time.Now(), failed: 1}}
	case logged:
		t.by[who] = &trouble{begun: time.Now(), failed: 1}
	}
}

// Has reports whether the log has a failure of a handler that is not over.
func (t *Troubles) Has(who string) bool { return t.by[who] != nil }

// Any reports whether there is a failure that is not over.
func (t *Troubles) Any() bool { return len(t.by) > 0 }

// LogRecovered logs that the failures of a handler are over, if there were any.
func (t *Troubles) LogRecovered(log logr.Logger, who, line string) {
	if known := t.by[who]; known != nil {
		t.Over(who)
		log.Info(line, "failed", known.failed, "lasted", time.Since(known.begun).Round(time.Second).String())
	}
}

// Over forgets the failures of a handler.
func (t *Troubles) Over(who string) {
	known := t.by[who]
	if known == nil {
		return
	}
	known.voice.Over()
	if delete(t.by, who); len(t.by) == 0 {
		t.by = nil
	}
}

// Works notes that a handler has succeeded. [Troubles.Settle] logs that once its changes are written.
func (t *Troubles) Works(log logr.Logger, who string) {
	if known := t.by[who]; known != nil {
		known.works, known.log = true, log
	}
}

// Void undoes Works for a handler and its sub-handlers: its changes were not written, and it runs again.
func (t *Troubles) Void(handler string) {
	for who, known := range t.by {
		if who == handler || strings.HasPrefix(who, handler+"/") {
			known.works, known.log = false, logr.Logger{}
		}
	}
}

// Settle logs which handlers work again.
func (t *Troubles) Settle() {
	for _, who := range slices.Sorted(maps.Keys(t.by)) {
		if known := t.by[who]; known.works {
			t.LogRecovered(known.log, who, "handler works again")
		}
	}
}

// Attempt is a failed attempt: its log line, and the record of its handler before and after it. Covered: one line of the
// log stands for all such errors.
type Attempt struct {
	Failure
	Before, After progress.Record
	Covered       bool
}

// Complain logs that an attempt failed. An early attempt, for a change of children or related objects, is logged only if
// its error is new.
func (t *Troubles) Complain(texts *Texts, a Attempt) {
	f := a.Failure
	again := max(0, time.Until(a.After.Due)).Round(time.Millisecond).String()
	f.Line, f.Due = "handler will be tried again", a.After.Due
	f.Known = f.Known || !a.Before.Early.IsZero() && a.Before.Message == a.After.Message
	switch {
	case a.After.Failed:
		f.Final = "handler failed for good"
	case a.After.Done:
		f.Line = "handler failed, which counts as success"
	default:
		f.Values = append(f.Values, "retryAfter", again)
	}
	switch logged := a.After.Failed || !a.Covered; {
	case a.After.Done && !a.After.Failed:
		if logged {
			texts.Say(f, nil)
		} else {
			f.Log.Info(f.Line, "error", f.Err.Error())
		}
		t.LogRecovered(f.Log, f.Handler, "handler works again")
	case logged:
		t.Say(texts, f.Handler, f)
	default:
		t.Failed(f.Handler, false)
		f.LogVerbose()
	}
}

// Say logs that a handler failed. The log will also have the end of the failure.
func (t *Troubles) Say(texts *Texts, who string, f Failure) {
	t.Failed(who, true)
	texts.Say(f, &t.by[who].voice)
}

// Rest notes that a handler is not tried again for now.
func (t *Troubles) Rest(who string) {
	if known := t.by[who]; known != nil {
		known.voice.Rest()
	}
}

// Gone notes that the object is gone, so that it no longer counts as failing.
func (t *Troubles) Gone() {
	for _, known := range t.by {
		known.voice.Over()
	}
}
