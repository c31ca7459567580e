// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/progress"
)

// Troubles are failures of which the log tells, each until it is over. The zero value has none.
type Troubles struct{ by map[string]*trouble }

type trouble struct {
	begun  time.Time
	failed int
	// works: it is over once what the handler wants is written. The log is where that is said then.
	works bool
	log   logr.Logger
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
		if delete(t.by, who); len(t.by) == 0 {
			t.by = nil
		}
		log.Info(line, "failed", known.failed, "lasted", time.Since(known.begun).Round(time.Second).String())
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

// Complain says in the log that an attempt of somebody failed, of whom there was a record before and is one after. One that
// was no attempt, because children or related objects hurried it, is told when it failed otherwise than before. Covered: the
// log tells of such errors once for all.
func (t *Troubles) Complain(log logr.Logger, who string, before, after progress.Record, err error, covered bool) {
	again := max(0, time.Until(after.Due)).Round(time.Millisecond).String()
	same := !before.Early.IsZero() && before.Message == after.Message
	told := after.Failed || !same && !covered
	if after.Done && !after.Failed {
		log.Info("handler failed, which counts as success", logmark.Warning, told, "error", err.Error())
		t.Mended(log, who, "handler works again")
		return
	}
	t.Failed(who, told)
	switch {
	case after.Failed:
		log.Error(err, "handler failed for good")
	case told:
		log.Info("handler will be tried again", logmark.Warning, true, "error", err.Error(), "retryAfter", again)
	default:
		log.V(1).Info("handler will be tried again", "error", err.Error(), "retryAfter", again)
	}
}
