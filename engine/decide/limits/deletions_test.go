// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package limits_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/decide/limits"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// deletionOf returns the deletion of the nth of so many objects.
func deletionOf(n, all int) limits.Deletion {
	return limits.Deletion{
		Pool: limits.Pool{Resource: "foos", Kind: "Foo"}, Owner: limits.Key{Namespace: "a", Name: fmt.Sprint(n)}, Object: fmt.Sprint(n),
		Cause: limits.Deleted, Count: func(time.Time) (int, int) { return all, 0 },
	}
}

// begins asks for deletions, and returns how many may begin.
func begins(d *limits.Deletions, from, to, all int, at time.Time) (n int) {
	for i := from; i < to; i++ {
		if d.Ask(deletionOf(i, all), at).CanBegin() {
			n++
		}
	}
	return n
}

// unrecorded returns limits that need no record.
func unrecorded(perMinute, share int) *limits.Deletions {
	d := limits.New(dsl.DeletionLimits{PerMinute: perMinute, Share: share}, make(chan struct{}, 1))
	d.Begin(limits.Record{}, false, start)
	return d
}

// TestDeletionsBeginWithinTheLimits holds how many of the deletions that are asked for at once may begin.
func TestDeletionsBeginWithinTheLimits(t *testing.T) {
	tests := map[string]struct {
		perMinute, share int
		asked, all, want int
	}{
		"all, within both":               {100, 30, 6, 20, 6},
		"no more than the rate":          {5, 30, 100, 1000, 5},
		"no more than the share":         {dsl.Unlimited, 30, 20, 20, 6},
		"all of few objects":             {100, 30, 19, 19, 19},
		"all, without limits":            {dsl.Unlimited, dsl.Unlimited, 500, 500, 500},
		"all, if the share is the whole": {dsl.Unlimited, 100, 500, 500, 500},
		"the defaults":                   {0, 0, 50, 100, 30},
		"a part of objects that no cache shows, once there are many": {dsl.Unlimited, 30, 100, 0, 19},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := begins(unrecorded(tt.perMinute, tt.share), 0, tt.asked, tt.all, start); got != tt.want {
				t.Errorf("%d begin, want %d", got, tt.want)
			}
		})
	}
}

// TestObjectsThatAreReplacedAreNoLoss holds that an operator may delete all objects of a kind again and again, if it makes
// as many.
func TestObjectsThatAreReplacedAreNoLoss(t *testing.T) {
	d := unrecorded(dsl.Unlimited, 30)
	for i := range 600 {
		x := deletionOf(i, 0)
		x.Count = func(after time.Time) (all, young int) {
			if want := start.Add(time.Duration(i-60) * time.Second); !after.Equal(want) {
				t.Fatalf("new are those after %s, want %s", after, want)
			}
			return 50, min(i, 50)
		}
		if out := d.Ask(x, start.Add(time.Duration(i)*time.Second)); !out.CanBegin() {
			t.Fatalf("deletion %d: %s", i, out)
		}
	}
}

// TestTheRateIsOfAnyMinute holds that the limit is for any minute, and not for the minutes of the clock.
func TestTheRateIsOfAnyMinute(t *testing.T) {
	d := unrecorded(10, dsl.Unlimited)
	var began []time.Time
	asked := 0
	for at := start; at.Before(start.Add(time.Hour)); at = at.Add(7 * time.Second) {
		for range 3 {
			if d.Ask(deletionOf(asked, 1000), at).CanBegin() {
				asked++
				began = append(began, at)
			}
		}
	}
	for i := 10; i < len(began); i++ {
		if began[i].Sub(began[i-10]) < time.Minute {
			t.Fatalf("11 began within a minute, from %s", began[i-10])
		}
	}
	if len(began) < 500 {
		t.Errorf("%d began in an hour", len(began))
	}
}

// TestADeletionThatNobodyWantsDoesNotCount holds that a limit opens when what asked for the deletions is taken back.
func TestADeletionThatNobodyWantsDoesNotCount(t *testing.T) {
	d := unrecorded(dsl.Unlimited, 30)
	if got := begins(d, 0, 100, 100, start); got != 30 {
		t.Fatalf("%d begin", got)
	}
	soon := start.Add(3 * time.Minute)
	if d.Ask(deletionOf(99, 100), soon).CanBegin() {
		t.Error("a deletion begins while 70 wait")
	}
	for i := 30; i < 99; i++ {
		d.TakeBack(limits.Owner{Resource: "foos", Key: limits.Key{Namespace: "a", Name: fmt.Sprint(i)}})
	}
	if !d.Ask(deletionOf(99, 100), soon).CanBegin() {
		t.Error("a single deletion waits after the others were taken back")
	}
	if got := begins(d, 100, 130, 100, soon.Add(time.Hour)); got != 30 {
		t.Errorf("%d begin after an hour", got)
	}
	later := soon.Add(2 * time.Hour)
	begins(d, 200, 300, 100, later)
	if got := d.Waiting(later.Add(10 * time.Minute)); got != nil {
		t.Errorf("deletions that do not ask again wait still: %v", got)
	}
}

// TestWaitingDeletionsAreGrouped holds what people see of deletions that wait.
func TestWaitingDeletionsAreGrouped(t *testing.T) {
	d := unrecorded(dsl.Unlimited, 10)
	begins(d, 0, 20, 20, start)
	x := deletionOf(50, 20)
	x.Cause, x.Owner.Namespace = limits.Configuration, "b"
	d.Ask(x, start.Add(time.Second))
	d.NamespaceEnds("a", true)
	pool := limits.Pool{Resource: "foos", Kind: "Foo"}
	want := []limits.Group{
		{Pool: pool, Cause: limits.Configuration, Reason: limits.ShareExceeded, Count: 1, All: 21, Begun: 2, Since: start.Add(time.Second), Namespaces: []string{"b"}},
		{Pool: pool, Cause: limits.Namespace, Reason: limits.ShareExceeded, Count: 18, All: 21, Begun: 2, Since: start, Namespaces: []string{"a"}},
	}
	if diff := cmp.Diff(want, d.Waiting(start.Add(2*time.Second))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAReleaseLetsItsDeletionsGo holds which deletions a release lets go, and which reconciles it wakes.
func TestAReleaseLetsItsDeletionsGo(t *testing.T) {
	for name, tt := range map[string]struct {
		release limits.Release
		lets    bool
	}{
		"all":                             {limits.Release{Until: start.Add(time.Hour)}, true},
		"the resource":                    {limits.Release{Resource: "foos", Until: start.Add(time.Hour)}, true},
		"the beginning of another name":   {limits.Release{Resource: "fo", Until: start.Add(time.Hour)}, false},
		"another cause":                   {limits.Release{Cause: limits.Selector, Until: start.Add(time.Hour)}, false},
		"one that is over":                {limits.Release{Until: start}, false},
		"the resource, and another cause": {limits.Release{Resource: "foos", Cause: limits.Handler, Until: start.Add(time.Hour)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := unrecorded(1, 10)
			began := begins(d, 0, 100, 100, start)
			_, wakes := d.Release([]limits.Release{tt.release}, start)
			again := begins(d, began, 100, 100, start.Add(time.Second))
			if want := 100 - began; tt.lets && (len(wakes) != want || again != want) || !tt.lets && len(wakes)+again > 0 {
				t.Errorf("%d are woken, %d begin", len(wakes), again)
			}
		})
	}
}

// TestACrashDoesNotRaiseTheRate holds that processes that follow each other stay within the rate together, whatever the
// record says when one crashes.
func TestACrashDoesNotRaiseTheRate(t *testing.T) {
	for _, perMinute := range []int{1, 7, 20, 100} {
		t.Run(fmt.Sprint(perMinute, " per minute"), func(t *testing.T) {
			var began []time.Time
			var stored limits.Record
			at, asked := start, 0
			for life := range 60 {
				d := limits.New(dsl.DeletionLimits{PerMinute: perMinute, Share: dsl.Unlimited}, make(chan struct{}, 1))
				d.Begin(stored, true, at)
				written := time.Time{}
				for end := at.Add(time.Duration(12+life*17%90) * time.Second); at.Before(end); at = at.Add(500 * time.Millisecond) {
					for range perMinute {
						if !d.Ask(deletionOf(asked, 100000), at).CanBegin() {
							break
						}
						asked++
						began = append(began, at)
					}
					if at.Sub(written) >= time.Minute {
						stored, written = d.Record(at), at
						d.Recorded(stored, false)
					}
				}
			}
			for i := perMinute; i < len(began); i++ {
				if began[i].Sub(began[i-perMinute]) < time.Minute {
					t.Fatalf("%d began within a minute from %s, which is deletion %d", perMinute+1, began[i-perMinute], i-perMinute)
				}
			}
			if len(began) < 3*perMinute {
				t.Errorf("only %d began in %s", len(began), at.Sub(start))
			}
		})
	}
}

// TestAWaitEndsInTurn holds that deletions that wait longer go first, and that a process that leads later knows what
// waits.
func TestAWaitEndsInTurn(t *testing.T) {
	d := unrecorded(10, dsl.Unlimited)
	begins(d, 0, 10, 1000, start)
	var after []time.Duration
	for i := range 25 {
		x := deletionOf(100+i, 1000)
		after = append(after, d.Ask(x, start.Add(time.Duration(i)*time.Millisecond)).After.Round(time.Second))
	}
	if !slices.IsSorted(after) || after[0] != time.Minute || after[24] != 3*time.Minute {
		t.Errorf("they are to ask again after %v", after)
	}
	next := limits.New(dsl.DeletionLimits{PerMinute: 10, Share: 30}, make(chan struct{}, 1))
	left := limits.Record{Waiting: []limits.Group{{Pool: limits.Pool{Resource: "foos", Kind: "Foo"}, Cause: limits.Deleted, Reason: limits.ShareExceeded, Count: 50, All: 100}}}
	next.Begin(left, false, start)
	if got := next.Ask(deletionOf(0, 100), start); got.Reason != limits.ShareExceeded {
		t.Errorf("the first deletion of the next process: %v", got)
	}
}

// TestTheShareIsOfTheObjectsOfNow holds that objects that were there long ago do not make a large deletion a small share.
func TestTheShareIsOfTheObjectsOfNow(t *testing.T) {
	d := unrecorded(dsl.Unlimited, 30)
	at, left := start, 1000
	for ; left > 100; left-- {
		if out := d.Ask(deletionOf(left, left), at); !out.CanBegin() {
			t.Fatalf("a deletion with %d objects left: %s", left, out)
		}
		at = at.Add(10 * time.Second)
	}
	if got := begins(d, 0, 100, 100, at); got < 20 || got > 30 {
		t.Errorf("%d of 100 begin", got)
	}
}

// TestATermBeginsWithWhatWaited holds that deletions that waited in the last term count, until they have had the time to
// ask again.
func TestATermBeginsWithWhatWaited(t *testing.T) {
	left := limits.Record{Waiting: []limits.Group{{Pool: limits.Pool{Resource: "foos", Kind: "Foo"}, Cause: limits.Configuration, Reason: limits.ShareExceeded, Count: 70, All: 100}}}
	d := limits.New(dsl.DeletionLimits{PerMinute: dsl.Unlimited, Share: 30}, make(chan struct{}, 1))
	d.Begin(left, false, start)
	held := d.Ask(deletionOf(1, 100), start)
	if held.Reason != limits.ShareExceeded || held.After > 2*time.Minute {
		t.Fatalf("the first deletion is to ask again in %s: %s", held.After, held)
	}
	if out := d.Ask(deletionOf(1, 100), start.Add(held.After)); !out.CanBegin() {
		t.Errorf("the only deletion that asks waits still: %s", out)
	}
}

// TestTheRestWaitsForAPerson holds that deletions beyond the share do not begin later by themselves: not when the minute
// is over, not one after the other, and not in a process that leads later.
func TestTheRestWaitsForAPerson(t *testing.T) {
	for name, last := range map[string]int{"they ask together": 50, "they ask one after the other": 31} {
		t.Run(name, func(t *testing.T) {
			d := unrecorded(dsl.Unlimited, 30)
			if got := begins(d, 0, last, 100, start); got != 30 {
				t.Fatalf("%d begin", got)
			}
			at := start
			for range 12 {
				at = at.Add(5 * time.Minute)
				if got := begins(d, 30, last, 70, at); got > 0 {
					t.Fatalf("%d begin after %s", got, at.Sub(start))
				}
			}
			next := limits.New(dsl.DeletionLimits{PerMinute: dsl.Unlimited, Share: 30}, make(chan struct{}, 1))
			next.Begin(d.Record(at), false, at)
			for range 3 {
				if got := begins(next, 30, last, 70, at); got > 0 {
					t.Fatalf("%d begin in the next process", got)
				}
				at = at.Add(2 * time.Minute)
			}
		})
	}
}

// TestAPausedDeletionCounts holds that deletions of paused owners wait without asking, until the pause ends.
func TestAPausedDeletionCounts(t *testing.T) {
	d := unrecorded(dsl.Unlimited, 30)
	begins(d, 0, 100, 100, start)
	each := func(do func(limits.Owner)) {
		for i := 20; i < 100; i++ {
			do(limits.Owner{Resource: "foos", Key: limits.Key{Namespace: "a", Name: fmt.Sprint(i)}})
		}
	}
	count := func(at time.Time) (n int) {
		for _, g := range d.Waiting(at) {
			n += g.Count
		}
		return n
	}
	each(d.Pause)
	begins(d, 30, 31, 70, start.Add(time.Hour))
	if n := count(start.Add(time.Hour)); n != 70 {
		t.Errorf("%d wait while they are paused", n)
	}
	each(func(o limits.Owner) { d.Settle(o, false, start.Add(time.Hour)) })
	if n := count(start.Add(2 * time.Hour)); n != 0 {
		t.Errorf("%d wait that do not ask after the pause", n)
	}
}

// TestAFailedDeletionCountsOnce holds that attempts to delete the same object again count as one deletion in a minute.
func TestAFailedDeletionCountsOnce(t *testing.T) {
	d := unrecorded(10, 30)
	for i := range 30 {
		if out := d.Ask(deletionOf(0, 20), start.Add(time.Duration(i)*time.Second)); !out.CanBegin() {
			t.Fatalf("attempt %d: %s", i+1, out)
		}
	}
}

// TestObjectsThatTheCacheHasLostCount holds that a share is one of the objects before some of them left the cache.
func TestObjectsThatTheCacheHasLostCount(t *testing.T) {
	for left, want := range map[int]int{18: 18, 40: 8} { // of 60 objects; the first ones do not know of the others
		d := unrecorded(dsl.Unlimited, 30)
		n := 0
		for i := range left {
			x := deletionOf(i, 60-left)
			if x.Gone = true; d.Ask(x, start).CanBegin() {
				n++
			}
		}
		if n != want {
			t.Errorf("%d of %d that have left begin, want %d", n, left, want)
		}
	}
}

// TestNothingBeginsBeforeTheRecordIsKnown holds that a term begins with questions that wait for the record, and that they
// are answered then.
func TestNothingBeginsBeforeTheRecordIsKnown(t *testing.T) {
	d := limits.New(dsl.DeletionLimits{}, make(chan struct{}, 1))
	d.Await()
	for i := range 3 {
		if out := d.Ask(deletionOf(i, 100), start); out.Reason != limits.RecordPending || out.After > 5*time.Second {
			t.Fatalf("deletion %d: %s, again after %s", i, out, out.After)
		}
	}
	if wakes := d.Begin(limits.Record{}, false, start); len(wakes) != 3 {
		t.Errorf("%d are woken", len(wakes))
	}
	if n := begins(d, 0, 3, 100, start); n != 3 {
		t.Errorf("%d begin", n)
	}
}
