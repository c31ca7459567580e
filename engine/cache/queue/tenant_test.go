// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// tenantOf is the tenant of a key such as a/1.
func tenantOf(key string) string {
	name, _, _ := strings.Cut(key, "/")
	return name
}

// shift has one worker work on keys for so long, which of each key is said by took, and returns them in their order.
func shift(q *Queue[string], most time.Duration, took func(key string) time.Duration) (keys []string) {
	for end := time.Now().Add(most); time.Now().Before(end) && q.Len() > 0; {
		key, _ := q.Get()
		keys = append(keys, key)
		<-time.After(took(key))
		q.Done(key)
	}
	return keys
}

func TestTenantsShareTheWorkersTime(t *testing.T) {
	slow := func(key string) time.Duration {
		if tenantOf(key) == "slow" {
			return time.Second
		}
		return time.Millisecond
	}
	of := func(keys []string, name string) (n int) {
		return len(slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return tenantOf(key) != name }))
	}
	tests := map[string]func(t *testing.T, q *Queue[string]){
		"a key waits for one of another tenant's keys, not for all of them": func(t *testing.T, q *Queue[string]) {
			for n := range 100 {
				q.Add(fmt.Sprint("slow/", n), Fresh)
			}
			if got := shift(q, 10*time.Second, slow); len(got) != 10 {
				t.Fatalf("%d keys in 10 s, want 10: one that is alone is not held up", len(got))
			}
			q.Add("quick/0", Fresh)
			if got := shift(q, time.Second, slow); len(got) == 0 || got[0] != "quick/0" {
				t.Errorf("keys %v, want that of the other tenant first", got)
			}
		},
		"so does a key that is to be tried again, though the others are fresh": func(t *testing.T, q *Queue[string]) {
			for n := range 100 {
				q.Add(fmt.Sprint("slow/", n), Fresh)
			}
			shift(q, 10*time.Second, slow)
			q.Add("quick/0", Due)
			if got := shift(q, 5*time.Second, slow); !slices.Contains(got, "quick/0") {
				t.Errorf("keys %v, want that of the other tenant among them", got)
			}
		},
		"of two that have always something to do each has half of the time": func(t *testing.T, q *Queue[string]) {
			for n := range 20 {
				q.Add(fmt.Sprint("slow/", n), Fresh)
			}
			for n := range 100_000 {
				q.Add(fmt.Sprint("quick/", n), Fresh)
			}
			got := shift(q, 20*time.Second, slow)
			if n := of(got, "slow"); n < 9 || n > 11 {
				t.Errorf("%d seconds of 20 were for the slow one", n)
			}
		},
		"who comes later does not make up for when it was not there": func(t *testing.T, q *Queue[string]) {
			for n := range 1000 {
				q.Add(fmt.Sprint("early/", n), Fresh)
			}
			second := func(string) time.Duration { return time.Second }
			shift(q, 100*time.Second, second)
			for n := range 1000 {
				q.Add(fmt.Sprint("late/", n), Fresh)
			}
			got := shift(q, 20*time.Second, second)
			if n := of(got, "early"); n < 9 || n > 11 {
				t.Errorf("%d seconds of 20 were for the one that was there before", n)
			}
		},
		"one with many keys is not starved by many that have one key each": func(t *testing.T, q *Queue[string]) {
			q.Add("many/0", Fresh)
			q.Add("many/1", Fresh)
			for n := range 3 {
				q.Add(fmt.Sprint("single", n, "/0"), Fresh)
			}
			var got []string
			for range 100 {
				key, _ := q.Get()
				got = append(got, key)
				<-time.After(time.Second)
				q.Add(key, Fresh) // it is never at rest
				q.Done(key)
			}
			if n := of(got, "many"); n < 20 || n > 30 {
				t.Errorf("%d seconds of 100 were for one of four", n)
			}
		},
		"one that a worker was busy for does not make up for what it did not ask for": func(t *testing.T, q *Queue[string]) {
			q.Add("long/0", Fresh)
			long, _ := q.Get()
			for n := range 1000 {
				q.Add(fmt.Sprint("busy/", n), Fresh)
			}
			second := func(string) time.Duration { return time.Second }
			shift(q, 100*time.Second, second)
			for n := 1; n < 1000; n++ {
				q.Add(fmt.Sprint("long/", n), Fresh)
			}
			got := shift(q, 20*time.Second, second)
			if n := of(got, "busy"); n < 9 || n > 11 {
				t.Errorf("%d seconds of 20 were for the one that was busy all the time", n)
			}
			q.Done(long)
		},
		"what keys are taken to cost does not hold up who comes later": func(t *testing.T, q *Queue[string]) {
			for n := range 1000 {
				q.Add(fmt.Sprint("early/", n), Fresh)
			}
			first, _ := q.Get()
			<-time.After(time.Minute)
			q.Done(first)
			var all []string
			for range 4 {
				key, _ := q.Get()
				all = append(all, key)
			}
			for _, key := range all {
				q.Done(key)
			}
			q.Add("late/0", Fresh)
			if got := shift(q, 2*time.Second, func(string) time.Duration { return time.Second }); !slices.Contains(got, "late/0") {
				t.Errorf("keys %v, want that of the other tenant among them", got)
			}
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := New("", nil, tenantOf)
				test(t, q)
				q.ShutDown()
			})
		})
	}
}

func TestATenantIsChargedWhatItsKeysTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New("", nil, tenantOf)
		for n := range 4 {
			q.Add(fmt.Sprint("a/", n), Fresh)
		}
		first, _ := q.Get()
		second, _ := q.Get()
		<-time.After(time.Second)
		q.Done(first)
		<-time.After(4 * time.Second)
		q.Done(second)
		third, _ := q.Get()
		q.Done(third)
		if got := q.order.tenants.all["a"].had; got != 6*time.Second {
			t.Errorf("charged %s, want the 6 s that workers were busy", got)
		}
		q.ShutDown()
	})
}

func TestATenantWithNothingToDoIsForgotten(t *testing.T) {
	q := New("", nil, tenantOf)
	defer q.ShutDown()
	for n := range 1000 {
		q.Add(fmt.Sprint(n, "/a"), Class(n%classes))
		q.Add(fmt.Sprint(n, "/a"), Fresh)
	}
	if got := len(drain(q)); got != 1000 {
		t.Errorf("%d keys, want 1000", got)
	}
	if n := len(q.order.tenants.all) + len(q.order.tenants.work); n > 0 {
		t.Errorf("%d tenants and keys at work are remembered", n)
	}
}

func TestTenantsThatComeAndGoAreForgottenWhileAKeyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New("", nil, tenantOf)
		q.Add("waits/0", Resync)
		most := 0
		for n := range 3000 {
			q.Add(fmt.Sprint(n/2, "/a"), Fresh)
			key, _ := q.Get()
			<-time.After(time.Millisecond)
			if tenantOf(key) == "waits" {
				q.Add(key, Resync)
			}
			q.Done(key)
			most = max(most, len(q.order.tenants.all))
		}
		if most > 4*aFew {
			t.Errorf("%d tenants were remembered at once", most)
		}
		q.ShutDown()
	})
}

func BenchmarkManyTenants(b *testing.B) {
	q := New("", nil, tenantOf)
	defer q.ShutDown()
	keys := make([]string, 10_000)
	for n := range keys {
		keys[n] = fmt.Sprint(n, "/a")
	}
	for b.Loop() {
		for _, key := range keys {
			q.Add(key, Backlog)
		}
		drain(q)
	}
}
