// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"errors"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
)

// localSchedule runs at the local times of a time zone. The times are those of a clock that shows UTC, so they all exist, once; the
// changes of the zone's clocks are applied afterwards.
type localSchedule struct {
	times *cron.SpecSchedule
	zone  *time.Location
}

// parseCron reads a schedule in a time zone that [checkZone] has passed, or in UTC.
func parseCron(text, timeZone string) (*localSchedule, error) {
	parser := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
	if len(text) > 4 && (text[:3] == "TZ=" || text[:4] == "CRON") {
		return nil, fmt.Errorf("reading schedule %q: a time zone stands in timeZone", text)
	}
	zone, err := time.LoadLocation(timeZone) // an empty name is UTC
	if err != nil {
		return nil, fmt.Errorf("reading schedule %q: %w", text, err)
	}
	parsed, err := parser.Parse("TZ=UTC " + text)
	if err != nil {
		return nil, fmt.Errorf("reading schedule %q: %w", text, err)
	}
	times, fields := parsed.(*cron.SpecSchedule)
	if !fields {
		return nil, fmt.Errorf("reading schedule %q: a fixed period stands in every", text)
	}
	s := &localSchedule{times: times, zone: zone}
	if s.next(time.Now()).IsZero() {
		return nil, fmt.Errorf("reading schedule %q: %w", text, errNever)
	}
	return s, nil
}

var errNever = errors.New("that day never comes")

// everyHour are the bits of all hours of a schedule.
const everyHour = 1<<24 - 1

// next returns the first run after a time, or zero if there is none.
//
// When clocks change, a schedule for some hours runs once for each of its local times: at the moment of the change if the local time
// is skipped, and the first time if it comes twice. A schedule for all hours runs whenever clocks show one of its times, so that its
// runs keep their distance.
func (s *localSchedule) next(after time.Time) time.Time {
	if s.times.Hour&everyHour == everyHour {
		return s.shown(after)
	}
	local := localTime(after.In(s.zone))
	for {
		if local = s.times.Next(local); local.IsZero() {
			return local
		}
		if at := s.instant(local); at.After(after) {
			return at.In(after.Location())
		}
	}
}

// shown returns the first time after another at which clocks show a time of the schedule.
func (s *localSchedule) shown(after time.Time) time.Time {
	from := after.In(s.zone)
	for past := localTime(from); ; {
		local := s.times.Next(past)
		if local.IsZero() {
			return local
		}
		at := from.Add(local.Sub(localTime(from)))
		_, end := from.ZoneBounds()
		if end.IsZero() || at.Before(end) {
			return at.In(after.Location())
		}
		from = end.In(s.zone)
		past = localTime(from).Add(-1) // a run may be due at the moment of the change
	}
}

// instant returns the time at which clocks first show a local time, or the time at which they skip it.
func (s *localSchedule) instant(local time.Time) time.Time {
	for from := local.AddDate(0, 0, -1).In(s.zone); ; { // no zone is a day from UTC
		at := from.Add(local.Sub(localTime(from)))
		start, end := from.ZoneBounds()
		switch {
		case at.Before(start):
			return start
		case end.IsZero() || at.Before(end):
			return at
		}
		from = end.In(s.zone)
	}
}

// localTime returns what clocks show at a time, as a time in UTC.
func localTime(at time.Time) time.Time {
	_, offset := at.Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}
