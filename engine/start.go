// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/operate/status"
)

const (
	// startSlow is how long a start takes before the log says what it waits for.
	startSlow = 5 * time.Second
	// startLook is the interval of checks for changes after that.
	startLook = time.Second
)

// sayStart logs what a slow start waits for, and its end. It returns when the process works or stands by, or when ctx
// ends.
func (e *Engine) sayStart(ctx context.Context) {
	for said, wait := "", startSlow; ; wait = startLook {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if e.state() != status.Starting {
			if said != "" {
				e.log.Info("operator has started after a wait", "lasted", time.Since(e.made).Round(time.Second).String())
			}
			return
		}
		if now := strings.Join(e.startWaits(), "; "); now != said && !e.outages.Logged() {
			e.log.Info("start takes long", "waitsFor", now, "since", time.Since(e.made).Round(time.Second).String())
			said = now
		}
	}
}

// waitsNamed is how many resources a line names.
const waitsNamed = 5

// startWaits returns what the start waits for.
func (e *Engine) startWaits() (out []string) {
	if startup := e.hooks.Startup(); startup != "" {
		return []string{"startup " + startup}
	}
	more := 0
	for _, f := range e.sources.All() {
		now := f.Status()
		switch name := f.Name().String(); {
		case now.Phase != source.Starting:
		case len(out) == waitsNamed:
			more++
		case now.Message == "":
			out = append(out, name)
		default:
			out = append(out, name+": "+now.Message)
		}
	}
	if more > 0 {
		out = append(out, "and "+strconv.Itoa(more)+" more resources")
	}
	for _, s := range e.pauses.watches {
		if !s.seen() {
			out = append(out, "what is paused: "+s.source.String())
		}
	}
	if len(out) == 0 && !e.elector.Leading() {
		out = append(out, "leadership")
	}
	slices.Sort(out)
	return out
}
