// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/client-go/util/workqueue"
)

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &meters{values: map[string]float64{}}
		q := New("foos", m, alone[string])
		for _, key := range []string{"a", "b", "c"} {
			q.Add(key, Fresh)
		}
		q.AddAfter("d", Due, time.Hour)
		key, _ := q.Get()
		<-time.After(10*time.Second + time.Millisecond)
		want := map[string]float64{
			"foos depth": 2, "foos adds": 3, "foos latency": 1, "foos retries": 1,
			"foos unfinished": 10, "foos longest": 10,
		}
		if diff := cmp.Diff(want, m.copy(), cmpopts.IgnoreMapEntries(func(name string, _ float64) bool {
			return strings.HasSuffix(name, " seconds") || strings.HasSuffix(name, " sets")
		})); diff != "" {
			t.Errorf("while a key is in work (-want +got):\n%s", diff)
		}
		q.ShutDown()
		q.Done(key)
		got := m.copy()
		if got["foos depth"] != 0 || got["foos unfinished"] != 0 || got["foos longest"] != 0 {
			t.Errorf("after the end the gauges are not settled: %v", got)
		}
		next := New("foos", m, alone[string])
		next.Add("a", Fresh)
		q.ShutDown()
		if got := m.copy()["foos depth"]; got != 1 {
			t.Errorf("the depth of the next queue of that name is %v, want 1", got)
		}
		next.ShutDown()
	})
}

// TestWhatComesLateDoesNotCount holds that the depth is none after the end, though an addition that had begun before ends behind it.
func TestWhatComesLateDoesNotCount(t *testing.T) {
	m := &meters{values: map[string]float64{}}
	q := New("foos", m, alone[string])
	q.Add("a", Fresh)
	key, _ := q.Get()
	q.inner.Add(key) // what it is wanted as was taken by another addition
	q.ShutDown()
	q.Done(key)
	q.tally.added() // it was asked for the end before
	if got := m.copy()["foos depth"]; got != 0 {
		t.Errorf("the depth is %v", got)
	}
}

// TestAKeyThatComesWhileItIsInWork holds that it waits from when it came, and counts once, however often it comes.
func TestAKeyThatComesWhileItIsInWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &meters{values: map[string]float64{}}
		q := New("foos", m, alone[string])
		defer q.ShutDown()
		q.Add("a", Fresh)
		key, _ := q.Get()
		q.Add("a", Fresh)
		<-time.After(time.Second)
		q.Add("a", Due)
		check := func(when string, depth, adds, waited float64) {
			t.Helper()
			got := m.copy()
			if got["foos depth"] != depth || got["foos adds"] != adds || got["foos latency seconds"] != waited {
				t.Errorf("%s: %v, want a depth of %v after %v that waited %v s", when, got, depth, adds, waited)
			}
		}
		check("while it is in work", 1, 2, 0)
		<-time.After(2 * time.Second)
		q.Done(key)
		check("when the worker is done", 1, 2, 0)
		q.Add("a", Fresh)
		<-time.After(time.Second)
		key, _ = q.Get()
		check("when it is in work again", 0, 2, 4)
		<-time.After(7 * time.Second)
		q.Done(key)
		if got := m.copy()["foos work seconds"]; got != 10 {
			t.Errorf("workers were at it for %v s, want 10", got)
		}
	})
}

// TestNothingIsMeasuredWhileNothingIsInWork holds that the work in progress is published as long as there is some, and once
// more when there is none.
func TestNothingIsMeasuredWhileNothingIsInWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &meters{values: map[string]float64{}}
		q := New("foos", m, alone[string])
		defer q.ShutDown()
		for range 2 {
			before := m.copy()["foos longest sets"]
			q.Add("a", Fresh)
			key, _ := q.Get()
			<-time.After(2*time.Second + time.Millisecond)
			q.Done(key)
			<-time.After(time.Hour)
			got := m.copy()
			if sets := got["foos longest sets"] - before; sets != 5 || got["foos longest"] != 0 || got["foos unfinished"] != 0 {
				t.Errorf("published %v times, want 5, the last time that there is none: %v", sets, got)
			}
		}
	})
}

// meters is a provider that adds up; observations are counted.
type meters struct {
	mu     sync.Mutex
	values map[string]float64
}

func (m *meters) copy() map[string]float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]float64{}
	maps.Copy(out, m.values)
	return out
}

type meter struct {
	all  *meters
	name string
}

func (m meter) add(n float64) {
	m.all.mu.Lock()
	defer m.all.mu.Unlock()
	m.all.values[m.name] += n
}

func (m meter) Inc() { m.add(1) }
func (m meter) Dec() { m.add(-1) }

func (m meter) Observe(value float64) {
	m.add(1)
	meter{m.all, m.name + " seconds"}.add(value)
}

func (m meter) Set(value float64) {
	meter{m.all, m.name + " sets"}.add(1)
	m.all.mu.Lock()
	defer m.all.mu.Unlock()
	m.all.values[m.name] = value
}

func (m *meters) Settle(name string) {
	for _, gauge := range []string{" depth", " unfinished", " longest"} {
		meter{m, name + gauge}.Set(0)
	}
}

func (m *meters) NewDepthMetric(name string) workqueue.GaugeMetric {
	return meter{m, name + " depth"}
}

func (m *meters) NewAddsMetric(name string) workqueue.CounterMetric {
	return meter{m, name + " adds"}
}

func (m *meters) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return meter{m, name + " latency"}
}

func (m *meters) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return meter{m, name + " work"}
}

func (m *meters) NewUnfinishedWorkSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return meter{m, name + " unfinished"}
}

func (m *meters) NewLongestRunningProcessorSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return meter{m, name + " longest"}
}

func (m *meters) NewRetriesMetric(name string) workqueue.CounterMetric {
	return meter{m, name + " retries"}
}
