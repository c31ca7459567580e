// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

// zones have clocks that change by one hour, by two and by half an hour, at midnight and at other times, each year or in a month that moves.
var zones = []string{
	"UTC", "Europe/Berlin", "Europe/Dublin", "America/New_York", "America/St_Johns", "America/Santiago", "America/Sao_Paulo",
	"America/Havana", "America/Nuuk", "America/Asuncion", "Asia/Beirut", "Asia/Gaza", "Asia/Tehran", "Asia/Kathmandu", "Africa/Cairo",
	"Africa/Casablanca", "Australia/Lord_Howe", "Antarctica/Troll", "Atlantic/Azores",
}

// scheduleIn returns a schedule in a time zone.
func scheduleIn(t *testing.T, text, zone string) *dsl.Timing {
	t.Helper()
	var op dsl.Operator
	r := op.Resource("foos.v1.example.com", func(r *dsl.Resource) {
		r.On([]dsl.Cause{dsl.Timer}, "run", func(context.Context, *dsl.Request) error { return nil }, dsl.At(dsl.Timing{Cron: text, TimeZone: zone}))
	})
	return r.Handlers()[0].Timing
}

func TestADailyScheduleRunsOnceForEachDateInEveryZone(t *testing.T) {
	for _, name := range zones {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, clock := range []string{"00:00", "00:30", "02:15", "02:30", "03:00", "23:30"} {
			at, _ := time.Parse("15:04", clock)
			schedule := scheduleIn(t, fmt.Sprintf("%d %d * * *", at.Minute(), at.Hour()), name)
			for year := 2006; year < 2030; year++ {
				from, to := time.Date(year, 1, 1, 0, 0, 0, 0, zone), time.Date(year+1, 1, 1, 0, 0, 0, 0, zone)
				dates := map[string]bool{}
				runs := 0
				for run := schedule.Next(from.Add(-1)); run.Before(to); run = schedule.Next(run) {
					runs++
					shown, date := run.Format("15:04:05"), run.Format(time.DateOnly)
					change, _ := run.ZoneBounds()
					switch {
					case shown == clock+":00" && dates[date]:
						t.Errorf("%s: the schedule for %s runs twice on %s", name, clock, date)
					case shown == clock+":00":
						dates[date] = true
					case !run.Equal(change):
						t.Errorf("%s: the schedule for %s runs at %s", name, clock, run)
					}
				}
				if want := time.Date(year, 12, 31, 0, 0, 0, 0, time.UTC).YearDay(); runs != want {
					t.Errorf("%s: the schedule for %s runs %d times in %d, want %d", name, clock, runs, year, want)
				}
			}
		}
	}
}

// TestAScheduleForAllHoursRunsWheneverClocksShowItsTime goes through the minutes around each change of clocks.
func TestAScheduleForAllHoursRunsWheneverClocksShowItsTime(t *testing.T) {
	for _, name := range zones {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		_, change := time.Date(2000, 1, 1, 0, 0, 0, 0, zone).ZoneBounds()
		for !change.IsZero() && change.Year() < 2038 {
			from, to := change.Add(-2*time.Hour), change.Add(2*time.Hour)
			for text, every := range map[string]int{"*/10 * * * *": 10, "0 0-23 * * *": 60, "@hourly": 60} {
				var want, got []time.Time
				for at := from.Add(time.Minute); at.Before(to); at = at.Add(time.Minute) {
					if at.In(zone).Minute()%every == 0 {
						want = append(want, at)
					}
				}
				schedule := scheduleIn(t, text, name)
				for at := schedule.Next(from); at.Before(to); at = schedule.Next(at) {
					got = append(got, at)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%s: the runs of %s around %s differ (-want +got):\n%s", name, text, change.In(zone), diff)
				}
			}
			_, change = change.In(zone).ZoneBounds()
		}
	}
}

func TestAScheduleRunsOnceForEachLocalTimeWhenClocksChange(t *testing.T) {
	tests := map[string]struct {
		cron, zone, from string
		want             []string
	}{
		"times that are skipped run at the change": {"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"03-29 03:00 +0200", "03-30 02:30 +0200"}},
		"several of them run there once": {"*/15 1-2 * * *", "Europe/Berlin", "2026-03-29T00:30:00Z",
			[]string{"03-29 01:45 +0100", "03-29 03:00 +0200", "03-30 01:00 +0200"}},
		"a time at the change itself runs once": {"0 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"03-29 03:00 +0200", "03-30 02:00 +0200"}},
		"times that come twice run the first time": {"*/30 2-3 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
			[]string{"10-25 02:00 +0200", "10-25 02:30 +0200", "10-25 03:00 +0100", "10-25 03:30 +0100"}},
		"also for who asks between the two": {"30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z",
			[]string{"10-26 02:30 +0100"}},
		"a skipped midnight runs an hour later": {"0 0 * * *", "Asia/Beirut", "2026-03-28T12:00:00Z",
			[]string{"03-29 01:00 +0300", "03-30 00:00 +0300"}},
		"a schedule for one day is not moved to another": {"0 0 * * 0", "America/Santiago", "2026-09-05T12:00:00Z",
			[]string{"09-06 01:00 -0300", "09-13 00:00 -0300"}},
		"half an hour is skipped": {"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z",
			[]string{"10-04 02:30 +1100", "10-05 02:15 +1100"}},
		"a whole day is skipped": {"0 12 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z",
			[]string{"12-29 12:00 -1000", "12-31 00:00 +1400", "12-31 12:00 +1400"}},
		"an hour after half an hour that is skipped stays": {"0 3 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z",
			[]string{"10-04 03:00 +1100", "10-05 03:00 +1100"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			at, err := time.Parse(time.RFC3339, test.from)
			if err != nil {
				t.Fatal(err)
			}
			zone, err := time.LoadLocation(test.zone)
			if err != nil {
				t.Fatal(err)
			}
			schedule := scheduleIn(t, test.cron, test.zone)
			var got []string
			for range test.want {
				at = schedule.Next(at)
				got = append(got, at.In(zone).Format("01-02 15:04 -0700"))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
