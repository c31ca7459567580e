// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// ResourceStats is the state of one watched resource at the moment of a scrape.
type ResourceStats struct {
	// Resource is the resource as its operator declares it. Each may occur once.
	Resource string
	// Up: it is synced and its handlers run.
	Up bool
	// Feeds are those of its children and related objects, by name, and whether they bring them in.
	Feeds map[string]bool
	// Objects is how many the cache holds.
	Objects int
	// Standing counts the objects that were handled by how they stand.
	Standing map[Standing]int
	// Parked is how many keys wait for the cache to catch up with the operator's own writes.
	Parked int
	// Broken is how many objects the breaker holds because they loop without progress.
	Broken int
	// Daemons are its daemons, each handler once.
	Daemons []DaemonStats
	// States are those of its machines, each once.
	States []StateStats
	// LastEvent is when the last event or bookmark came. Zero, when none has, gives no age.
	LastEvent time.Time
}

// IndexStats is the state of one index at the moment of a scrape.
type IndexStats struct {
	// Index is its name. Each may occur once.
	Index string
	// Up: it has all that there is.
	Up bool
	// Objects is how many it has something of, and Keys how many keys have values. LeftOut is how many objects it has
	// nothing of because its function failed. Read is how many keys were read, each counted once for each object whose
	// handlers have.
	Objects, Keys, LeftOut, Read int
}

// DaemonStats counts the daemons of one handler: goroutines, each of one object.
type DaemonStats struct {
	Handler string
	// Running is how many run, or wait for their next run. Late is how many have not stopped within their time.
	Running, Late int
}

// StateStats counts the objects in a state of a machine.
type StateStats struct {
	Machine, State string
	Objects        int
	// Oldest is since when the object is in it that has been so for the longest time; zero where there is none.
	Oldest time.Time
}

// MissingRight is a right that the operator's account lacks at the moment of a scrape.
type MissingRight struct {
	// Resource is what it is about, with its group and subresource, as in "foos.example.com/status",
	// Verb what may not be done with it. Each pair may occur once.
	Resource, Verb string
	// Namespaces is in how many it is known to be missing; 1 also when that is everywhere.
	Namespaces int
}

// Resources sets what is asked for the state of the resources at each scrape. The function must
// be quick and may be called at the same time from several goroutines. A later call replaces the
// function.
func (m *Metrics) Resources(stats func() []ResourceStats) { m.resources.ask.Store(&stats) }

// Indexes sets what is asked for the state of the indexes at each scrape. The function is as for Resources.
func (m *Metrics) Indexes(stats func() []IndexStats) { m.indexes.ask.Store(&stats) }

// MissingRights sets what is asked for the rights that are missing at each scrape. The function is as for
// Resources.
func (m *Metrics) MissingRights(missing func() []MissingRight) { m.rights.ask.Store(&missing) }

// scraped is a collector that asks when it is scraped, so gauges cannot go stale: a right that was given has no series.
type scraped[T any] struct {
	ask   atomic.Pointer[func() []T]
	descs []*prometheus.Desc
	// tell gives the gauges of one answer.
	tell func(of T, gauge func(d *prometheus.Desc, value float64, labels ...string))
}

func (c *scraped[T]) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		out <- d
	}
}

func (c *scraped[T]) Collect(out chan<- prometheus.Metric) {
	ask := c.ask.Load()
	if ask == nil {
		return
	}
	for _, of := range (*ask)() {
		c.tell(of, func(d *prometheus.Desc, value float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
		})
	}
}

// describe returns a new gauge of a collector.
func (c *scraped[T]) describe(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc(name, help, labels, nil)
	c.descs = append(c.descs, d)
	return d
}

func newResourceCollector() *scraped[ResourceStats] {
	c := &scraped[ResourceStats]{}
	up := c.describe("handwerk_resource_up",
		"1 while the resource is synced and its handlers run, 0 while it waits or is degraded.", "resource")
	feeds := c.describe("handwerk_feed_up",
		"1 while children or related objects of the resource are watched, 0 while they are not or not in every namespace; feed is as in /readyz: child/ or related/ and the name.",
		"resource", "feed")
	objects := c.describe("handwerk_cache_objects", "Objects of the resource that the cache holds.", "resource")
	parked := c.describe("handwerk_parked_keys", "Objects that wait for the cache to catch up with the operator's own writes.", "resource")
	broken := c.describe("handwerk_breaker_open", "Objects that the breaker holds because they loop without progress.", "resource")
	standing := c.describe("handwerk_objects",
		"Objects that were handled, by state: ready, waiting (for others, or for the cache), failing (a handler is tried again or failed for good, or its filter fails) or held (its deletion is).",
		"resource", "state")
	daemons := c.describe("handwerk_daemons",
		"Daemons, each of one object, by state: running, or late, which were told to stop and still run when their time is over.",
		"resource", "handler", "state")
	states := c.describeStates()
	age := c.describe("handwerk_informer_age_seconds",
		"Seconds since the last event or bookmark of the resource's watch. Bookmarks come about every minute.", "resource")
	c.tell = func(s ResourceStats, gauge func(*prometheus.Desc, float64, ...string)) {
		gauge(up, number(s.Up), s.Resource)
		for feed, watched := range s.Feeds {
			gauge(feeds, number(watched), s.Resource, feed)
		}
		gauge(objects, float64(s.Objects), s.Resource)
		gauge(parked, float64(s.Parked), s.Resource)
		gauge(broken, float64(s.Broken), s.Resource)
		for _, state := range Standings() {
			gauge(standing, float64(s.Standing[state]), s.Resource, string(state))
		}
		for _, d := range s.Daemons {
			gauge(daemons, float64(d.Running), s.Resource, d.Handler, "running")
			gauge(daemons, float64(d.Late), s.Resource, d.Handler, "late")
		}
		states(s, gauge)
		if !s.LastEvent.IsZero() {
			gauge(age, time.Since(s.LastEvent).Seconds(), s.Resource)
		}
	}
	return c
}

func newIndexCollector() *scraped[IndexStats] {
	c := &scraped[IndexStats]{}
	up := c.describe("handwerk_index_up", "1 while the index has all that there is, 0 while its resource waits or is degraded.", "index")
	objects := c.describe("handwerk_index_objects", "Objects of which the index has something.", "index")
	keys := c.describe("handwerk_index_keys", "Keys of the index that have values.", "index")
	left := c.describe("handwerk_index_left_out", "Objects of which the index has nothing because its function or its expressions failed for them.", "index")
	read := c.describe("handwerk_index_read", "Keys of the index that handlers have read and are woken by, counted for each of their objects.", "index")
	c.tell = func(s IndexStats, gauge func(*prometheus.Desc, float64, ...string)) {
		gauge(up, number(s.Up), s.Index)
		gauge(objects, float64(s.Objects), s.Index)
		gauge(keys, float64(s.Keys), s.Index)
		gauge(left, float64(s.LeftOut), s.Index)
		gauge(read, float64(s.Read), s.Index)
	}
	return c
}

func newRightsCollector() *scraped[MissingRight] {
	c := &scraped[MissingRight]{}
	missing := c.describe("handwerk_missing_rights",
		"Rights that the operator needs and its account lacks: in how many namespaces, 1 also for all of them. No series while nothing is missing.",
		"resource", "verb")
	c.tell = func(m MissingRight, gauge func(*prometheus.Desc, float64, ...string)) {
		gauge(missing, float64(m.Namespaces), m.Resource, m.Verb)
	}
	return c
}
