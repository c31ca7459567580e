// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"fmt"

	"github.com/go-logr/logr"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Log is dsl.Events where there is no object that an Event could be about: what is reported is logged, until it is over.
type Log struct {
	Log  logr.Logger
	Over func() bool
}

var _ dsl.Events = Log{}

// Event logs what is reported.
func (l Log) Event(kind dsl.EventType, reason, note string, args ...any) {
	if !l.Over() {
		l.Log.Info("handler reports", "type", string(kind), "reason", reason, "note", fmt.Sprintf(note, args...))
	}
}
