// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/handwerk-dev/handwerk/engine/book"
)

// Troubles are failures of which the log tells, each until it is over. The zero value has none.
type Troubles struct{ by map[string]*trouble }

type trouble struct {
	begun  time.Time
	failed int
	// works: it is over once what the handler wants is written. The log is where that is said then.
	works bool
	log   logr.Logger
	voice Voice
}

// Failed counts a failure of somebody. Once the log tells of one (told), it is to tell when it is over.
func (t *Troubles) Failed(who string, told bool) {
	switch known := t.by[who]; {
	case known != nil:
		known.failed, known.works = known.failed+1, false
	case told && t.by == nil:
		t.by = map[string]*trouble{who: {begun: time.Now(), failed: 1}}
	case told:
		t.by[who] = &trouble{begun: time.Now(), failed: 1}
	}
}

// Has reports whether the log has a failure of who that is not over.
func (t *Troubles) Has(who string) bool { return t.by[who] != nil }

// Any reports whether the log told of something that is not over.
func (t *Troubles) Any() bool { return len(t.by) > 0 }

// Mended says that what the log told of somebody is over.
func (t *Troubles) Mended(log logr.Logger, who, line string) {
	if known := t.by[who]; known != nil {
		t.Over(who)
		log.Info(line, "failed", known.failed, "lasted", time.Since(known.begun).Round(time.Second).String())
	}
}

// Over forgets what the log told of somebody.
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

// Works notes that a handler has succeeded. [Troubles.Settle] says so, once what it wants of its object is written.
func (t *Troubles) Works(log logr.Logger, who string) {
	if known := t.by[who]; known != nil {
		known.works, known.log = true, log
	}
}

// Void takes back Works for a handler and its sub-handlers: what it wanted was not written, and it runs again.
func (t *Troubles) Void(handler string) {
	for who, known := range t.by {
		if who == handler || strings.HasPrefix(who, handler+"/") {
			known.works, known.log = false, logr.Logger{}
		}
	}
}

// Settle says which handlers work again.
func (t *Troubles) Settle() {
	for _, who := range slices.Sorted(maps.Keys(t.by)) {
		if known := t.by[who]; known.works {
			t.Mended(known.log, who, "handler works again")
		}
	}
}

// Attempt is one that failed: what is said of it, and the record of its handler before it and after it. Covered: the log tells of
// such errors once for all.
type Attempt struct {
	Failure
	Before, After book.Record
	Covered       bool
}

// Complain says in the log that an attempt failed. One that was no attempt, because children or related objects hurried it, is told
// when it failed otherwise than before.
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
	switch told := a.After.Failed || !a.Covered; {
	case a.After.Done && !a.After.Failed:
		if told {
			texts.Say(f, nil)
		} else {
			f.Log.Info(f.Line, "error", f.Err.Error())
		}
		t.Mended(f.Log, f.Handler, "handler works again")
	case told:
		t.Say(texts, f.Handler, f)
	default:
		t.Failed(f.Handler, false)
		f.Whisper()
	}
}

// Say says in the log that somebody failed, who is to be told of when that is over.
func (t *Troubles) Say(texts *Texts, who string, f Failure) {
	t.Failed(who, true)
	texts.Say(f, &t.by[who].voice)
}

// Rest notes that somebody is not tried again for now.
func (t *Troubles) Rest(who string) {
	if known := t.by[who]; known != nil {
		known.voice.Rest()
	}
}

// Gone notes that the object is gone: nobody is told of it as one that fails still.
func (t *Troubles) Gone() {
	for _, known := range t.by {
		known.voice.Over()
	}
}
