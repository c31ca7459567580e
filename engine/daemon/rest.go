// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// betweenChanges is how long it is at least from the beginning of one run to that of the next, where changes cut short
// the wait between them: a daemon that changes its object with its client would else run all the time.
const betweenChanges = time.Second

// rest waits until the next run is due. It reports whether a change of what the daemon looks at has cut that short, and
// whether the daemon is to run then. Least is when it runs at the soonest for a change.
func (l *life) rest(due, least time.Time) (changed, goesOn bool) {
	timer := time.NewTimer(max(0, time.Until(due)))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return false, l.ctx.Err() == nil
		case <-l.ctx.Done():
			return false, false
		case <-l.news:
			if !l.differs() {
				continue
			}
			if due.Before(least) {
				least = due
			}
			return true, l.sleep(time.Until(least))
		}
	}
}

// differs reports whether what the daemon looks at is otherwise than it has seen it last, or left it.
func (l *life) differs() bool {
	now := l.crew.settings.Host.View(l.handler, l.Newest())
	l.crew.mu.Lock()
	defer l.crew.mu.Unlock()
	return now != l.seen
}

// left notes what the daemon has made of an object: what it has changed itself is nothing that it has not seen. Where it
// had not seen all of that object, it has not now.
func (l *life) left(before, after *unstructured.Unstructured) {
	was, is := l.crew.settings.Host.View(l.handler, before), l.crew.settings.Host.View(l.handler, after)
	l.crew.mu.Lock()
	defer l.crew.mu.Unlock()
	if l.seen == was {
		l.seen = is
	}
}
