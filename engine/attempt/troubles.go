// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"time"

	"github.com/go-logr/logr"
)

// Troubles are failures of which the log tells, each until it is over. The zero value has none.
type Troubles struct{ by map[string]*trouble }

type trouble struct {
	begun  time.Time
	failed int
}

// Failed counts a failure of somebody. Once the log tells of one (told), it is to tell when it is over.
func (t *Troubles) Failed(who string, told bool) {
	switch known := t.by[who]; {
	case known != nil:
		known.failed++
	case told && t.by == nil:
		t.by = map[string]*trouble{who: {time.Now(), 1}}
	case told:
		t.by[who] = &trouble{time.Now(), 1}
	}
}

// Mended says that what the log told of somebody is over.
func (t *Troubles) Mended(log logr.Logger, who, line string) {
	if known := t.by[who]; known != nil {
		delete(t.by, who)
		log.Info(line, "failed", known.failed, "lasted", time.Since(known.begun).Round(time.Second).String())
	}
}
