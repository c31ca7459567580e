// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// bubble runs a test in virtual time. It fails when the queue leaves a goroutine.
func bubble(t *testing.T, test func(t *testing.T, q *Queue[string])) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q := New("", nil, alone[string])
		test(t, q)
		q.ShutDown()
	})
}

// alone says that all keys are one tenant's.
func alone[K any](K) string { return "" }

// drain takes all that is ready, in order.
func drain(q *Queue[string]) []string {
	var keys []string
	for q.Len() > 0 {
		key, _ := q.Get()
		keys = append(keys, key)
		q.Done(key)
	}
	return keys
}

func want(t *testing.T, got []string, keys ...string) {
	t.Helper()
	if diff := cmp.Diff(keys, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func TestOrder(t *testing.T) {
	type add struct {
		after time.Duration // since the addition before
		key   string
		class Class
	}
	tests := map[string]struct {
		adds []add
		want []string
	}{
		"keys of one class come in the order of their arrival": {
			adds: []add{{0, "a", Fresh}, {0, "b", Fresh}, {1, "c", Fresh}, {0, "d", Fresh}, {0, "e", Fresh}},
			want: []string{"a", "b", "c", "d", "e"},
		},
		"fresh goes before due, due before the backlog, the backlog before resync": {
			adds: []add{{0, "r", Resync}, {0, "b", Backlog}, {0, "d", Due}, {0, "f", Fresh}},
			want: []string{"f", "d", "b", "r"},
		},
		"each fourth key is the one that waited longest": {
			adds: []add{
				{0, "old", Backlog}, {0, "older", Backlog},
				{time.Minute, "f1", Fresh}, {0, "f2", Fresh}, {0, "f3", Fresh}, {0, "f4", Fresh},
				{0, "f5", Fresh}, {0, "f6", Fresh}, {0, "f7", Fresh},
			},
			want: []string{"f1", "f2", "f3", "old", "f4", "f5", "f6", "older", "f7"},
		},
		"a backlog that is not old yet has to wait": {
			adds: []add{
				{0, "b", Backlog}, {29 * time.Second, "f1", Fresh}, {0, "f2", Fresh},
				{0, "f3", Fresh}, {0, "f4", Fresh}, {0, "f5", Fresh},
			},
			want: []string{"f1", "f2", "f3", "f4", "f5", "b"},
		},
		"due is set back by a second": {
			adds: []add{
				{0, "d", Due}, {time.Second / 2, "f1", Fresh}, {0, "f2", Fresh},
				{0, "f3", Fresh}, {0, "f4", Fresh},
			},
			want: []string{"f1", "f2", "f3", "f4", "d"},
		},
		"due is set back by no more than a second": {
			adds: []add{
				{0, "d", Due}, {2 * time.Second, "f1", Fresh}, {0, "f2", Fresh},
				{0, "f3", Fresh}, {0, "f4", Fresh},
			},
			want: []string{"f1", "f2", "f3", "d", "f4"},
		},
		"a key that is queued comes once": {
			adds: []add{{0, "a", Fresh}, {0, "b", Fresh}, {0, "a", Fresh}},
			want: []string{"a", "b"},
		},
		"a key added again with a better class moves up": {
			adds: []add{{0, "a", Backlog}, {0, "b", Backlog}, {0, "c", Due}, {0, "b", Fresh}},
			want: []string{"b", "c", "a"},
		},
		"a key added again with a worse class stays where it is": {
			adds: []add{{0, "a", Fresh}, {0, "b", Due}, {0, "a", Resync}},
			want: []string{"a", "b"},
		},
		"a key that moves up comes after what was fresh before": {
			adds: []add{{0, "a", Backlog}, {time.Second, "b", Fresh}, {time.Second, "a", Fresh}, {0, "c", Fresh}},
			want: []string{"b", "a", "c"},
		},
		"a key that moves up keeps the place that its age has earned": {
			adds: []add{{0, "a", Backlog}, {time.Minute, "b", Fresh}, {0, "a", Fresh}},
			want: []string{"a", "b"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, q *Queue[string]) {
				for _, a := range test.adds {
					<-time.After(a.after)
					q.Add(a.key, a.class)
				}
				want(t, drain(q), test.want...)
			})
		})
	}
}

func TestFreshCannotStarveTheBacklog(t *testing.T) {
	for _, class := range []Class{Due, Backlog, Resync} {
		t.Run(fmt.Sprint("class ", class), func(t *testing.T) {
			bubble(t, func(t *testing.T, q *Queue[string]) {
				q.Add("waiting", class)
				start := time.Now()
				for n := 0; time.Since(start) < time.Hour; n++ {
					// Two fresh keys come while one can be handled.
					q.Add(fmt.Sprint("a", n), Fresh)
					q.Add(fmt.Sprint("b", n), Fresh)
					key, _ := q.Get()
					<-time.After(100 * time.Millisecond)
					q.Done(key)
					if key == "waiting" {
						return
					}
				}
				t.Error("the key was never handed out")
			})
		})
	}
}

func TestOldBacklogDoesNotHoldUpFresh(t *testing.T) {
	bubble(t, func(t *testing.T, q *Queue[string]) {
		for n := range 1000 {
			q.Add(fmt.Sprint("backlog", n), Backlog)
		}
		<-time.After(time.Hour)
		for range 10 {
			q.Add("change", Fresh)
			for n := 0; ; n++ {
				key, _ := q.Get()
				q.Done(key)
				if key == "change" {
					break
				}
				if n > 0 {
					t.Fatalf("a fresh key waited for more than one of the old ones")
				}
			}
		}
	})
}

func TestKeyInWorkIsQueuedAgainWhenDone(t *testing.T) {
	bubble(t, func(t *testing.T, q *Queue[string]) {
		q.Add("a", Fresh)
		key, _ := q.Get()
		q.Add("a", Backlog)
		q.Add("a", Fresh)
		q.Add("b", Due)
		if q.Len() != 1 {
			t.Errorf("Len is %d, want only the key that no worker has", q.Len())
		}
		q.Done(key)
		want(t, drain(q), "a", "b")
	})
}

func TestDelays(t *testing.T) {
	tests := map[string]struct {
		add  func(q *Queue[string])
		want map[time.Duration][]string
	}{
		"a key comes when its time has come": {
			add:  func(q *Queue[string]) { q.AddAfter("a", Due, 3*time.Second) },
			want: map[time.Duration][]string{3 * time.Second: {"a"}},
		},
		"no delay means at once": {
			add:  func(q *Queue[string]) { q.AddAfter("a", Due, 0); q.AddAfter("b", Due, -time.Second) },
			want: map[time.Duration][]string{0: {"a", "b"}},
		},
		"the earliest of several times counts, when it comes later": {
			add:  func(q *Queue[string]) { q.AddAfter("a", Due, 9*time.Second); q.AddAfter("a", Due, 4*time.Second) },
			want: map[time.Duration][]string{4 * time.Second: {"a"}},
		},
		"the earliest of several times counts, when it comes first": {
			add:  func(q *Queue[string]) { q.AddAfter("a", Due, 4*time.Second); q.AddAfter("a", Due, 9*time.Second) },
			want: map[time.Duration][]string{4 * time.Second: {"a"}},
		},
		"a fresh change cuts the wait short, and the time still comes": {
			add:  func(q *Queue[string]) { q.AddAfter("a", Due, 5*time.Second); q.Add("a", Fresh) },
			want: map[time.Duration][]string{0: {"a"}, 5 * time.Second: {"a"}},
		},
		"keys whose time has come keep their class": {
			add: func(q *Queue[string]) {
				q.AddAfter("r", Resync, time.Second)
				q.AddAfter("d", Due, time.Second)
				q.AddAfter("f", Fresh, time.Second)
			},
			want: map[time.Duration][]string{time.Second: {"f", "d", "r"}},
		},
		"the best class of several delays counts": {
			add: func(q *Queue[string]) {
				q.AddAfter("a", Due, 7*time.Second)
				q.AddAfter("a", Resync, 6*time.Second)
				q.AddAfter("b", Backlog, 6*time.Second)
				q.AddAfter("c", Resync, 6*time.Second)
				q.AddAfter("c", Fresh, 7*time.Second)
			},
			want: map[time.Duration][]string{6 * time.Second: {"c", "a", "b"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, q *Queue[string]) {
				start, got := time.Now(), map[time.Duration][]string{}
				test.add(q)
				for range 20 {
					synctest.Wait()
					if keys := drain(q); keys != nil {
						got[time.Since(start)] = keys
					}
					<-time.After(time.Second)
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("keys by time (-want +got):\n%s", diff)
				}
				if len(q.later) > 0 || len(q.order.wanted) > 0 {
					t.Errorf("left behind: %v %v", q.later, q.order.wanted)
				}
			})
		})
	}
}

func TestShutDown(t *testing.T) {
	bubble(t, func(t *testing.T, q *Queue[string]) {
		q.Add("held", Fresh)
		held, _ := q.Get()
		var waiting sync.WaitGroup
		for range 3 {
			waiting.Go(func() {
				if key, shutdown := q.Get(); !shutdown {
					t.Errorf("a waiting worker got %q", key)
				}
			})
		}
		synctest.Wait()
		q.ShutDown()
		waiting.Wait()
		q.Done(held)
	})
	bubble(t, func(t *testing.T, q *Queue[string]) {
		q.Add("left", Fresh)
		q.Add("held", Due)
		q.AddAfter("delayed", Due, time.Second)
		q.ShutDown()
		q.ShutDown()
		q.Add("late", Fresh)
		q.AddAfter("later", Fresh, time.Second)
		q.AddAfter("late", Fresh, 0)
		<-time.After(time.Minute)
		if key, shutdown := q.Get(); !shutdown {
			t.Errorf("a worker got %q after the end", key)
		}
		if q.Len() != 0 {
			t.Errorf("Len is %d after the end", q.Len())
		}
	})
}

// Without a bubble: real goroutines race here.
func TestKeyIsNeverHandedToTwoWorkers(t *testing.T) {
	const keys, workers, adds = 20, 8, 3000
	q := New("", nil, alone[int])
	var holders, handled, wanted [keys]atomic.Int64
	var working, adding sync.WaitGroup
	for range workers {
		working.Go(func() {
			for {
				key, shutdown := q.Get()
				if shutdown {
					return
				}
				seen := wanted[key].Load()
				if holders[key].Add(1) > 1 {
					t.Errorf("key %d was handed to two workers", key)
				}
				handled[key].Store(seen)
				holders[key].Add(-1)
				q.Done(key)
			}
		})
	}
	for range 4 {
		adding.Go(func() {
			for range adds {
				key := rand.IntN(keys)
				wanted[key].Add(1)
				class := Class(rand.IntN(classes))
				if rand.IntN(3) > 0 {
					q.Add(key, class)
				} else {
					q.AddAfter(key, class, time.Duration(rand.IntN(int(time.Millisecond))))
				}
			}
		})
	}
	adding.Wait()
	deadline := time.Now().Add(time.Minute)
	for key := range keys {
		for handled[key].Load() != wanted[key].Load() {
			if time.Now().After(deadline) {
				t.Fatalf("the last addition of key %d was lost", key)
			}
			<-time.After(time.Millisecond)
		}
	}
	q.ShutDown()
	working.Wait()
}

// TestABurstIsGivenBack holds that a queue through which very many keys went at once keeps next to nothing of them.
func TestABurstIsGivenBack(t *testing.T) {
	const keys, most = 50_000, 120 // bytes a key, for the set of client-go's
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	q := New("foos", &meters{values: map[string]float64{}}, alone[[4]int])
	defer q.ShutDown()
	before := heap()
	for n := range keys {
		q.Add([4]int{n}, Class(n%classes))
	}
	for range keys {
		key, _ := q.Get()
		q.Done(key)
	}
	after := heap()
	per := float64(after-before) / keys
	t.Logf("%.0f B a key", per)
	if per > most {
		t.Errorf("%.0f bytes a key are left, want %d at most", per, most)
	}
}

func BenchmarkAddGet(b *testing.B) {
	const keys = 100_000
	b.ReportAllocs()
	for b.Loop() {
		q := New("", nil, alone[int])
		for n := range keys {
			q.Add(n, Class(n%classes))
		}
		for range keys {
			key, _ := q.Get()
			q.Done(key)
		}
		q.ShutDown()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/keys, "ns/key")
}
