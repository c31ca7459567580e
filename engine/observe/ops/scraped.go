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
	// Resource is the resource as its operator declares it. Unique.
	Resource string
	// Up: it is synced and its handlers run.
	Up bool
	// Sources says of the sources of its children and related objects, by name, whether they work.
	Sources map[string]bool
	// Objects is how many the cache holds.
	Objects int
	// Health counts the handled objects by their health.
	Health map[Health]int
	// Parked is the number of keys that wait for the cache to catch up with the operator's own writes.
	Parked int
	// Broken is the number of objects that the breaker holds because they loop without progress.
	Broken int
	// Daemons are its daemons, with one entry for each handler.
	Daemons []DaemonStats
	// States are the states of its machines, with one entry for each.
	States []StateStats
	// LastEvent is when the last event or bookmark came; zero if none came yet, and then there is no series.
	LastEvent time.Time
}

// IndexStats is the state of one index at the moment of a scrape.
type IndexStats struct {
	// Index is its name. Unique.
	Index string
	// Up: it has all objects.
	Up bool
	// Objects is the number of objects with values in the index, and Keys the number of keys with values. LeftOut is the
	// number of objects without values because the index function failed. Read is the number of keys that handlers have
	// read, counted once for each of their objects.
	Objects, Keys, LeftOut, Read int
}

// DaemonStats counts the daemons of one handler. A daemon is a goroutine for one object.
type DaemonStats struct {
	Handler string
	// Running counts daemons that run, or wait for their next run. Late counts daemons that still run after their time to
	// stop.
	Running, Late int
}

// StateStats counts the objects in a state of a machine.
type StateStats struct {
	Machine, State string
	Objects        int
	// Oldest is when the first of these objects entered the state; zero without objects.
	Oldest time.Time
}

// MissingRight is a right that the operator's account lacks at the moment of a scrape.
type MissingRight struct {
	// Resource has its group and subresource, as in "foos.example.com/status". Verb is the missing verb.
	// Each pair is unique.
	Resource, Verb string
	// Namespaces is the number of namespaces in which the right is known to be missing; 1 if it is missing everywhere.
	Namespaces int
}

// Resources sets the function that returns the state of the resources at each scrape. It must be quick, and is called by
// several goroutines at the same time. A later call replaces the function.
func (m *Metrics) Resources(stats func() []ResourceStats) { m.resources.ask.Store(&stats) }

// Indexes sets the function that returns the state of the indexes, as Resources does.
func (m *Metrics) Indexes(stats func() []IndexStats) { m.indexes.ask.Store(&stats) }

// MissingRights sets the function that returns the missing rights, as Resources does.
func (m *Metrics) MissingRights(missing func() []MissingRight) { m.rights.ask.Store(&missing) }

// Paused sets the function that counts the pauses by the place of their declaration, as Resources does.
func (m *Metrics) Paused(pauses func() []PauseStats) { m.pauses.ask.Store(&pauses) }

// PauseStats counts the pauses of one kind at the moment of a scrape.
type PauseStats struct {
	// By is the place of their declaration. Unique.
	By     string
	Number int
}

// Deletions sets the function that counts the deletions that wait for limits, as Resources does.
func (m *Metrics) Deletions(waiting func() []DeletionStats) { m.deletions.ask.Store(&waiting) }

// DeletionStats counts deletions that wait for limits at the moment of a scrape. The texts together are unique.
type DeletionStats struct {
	// Resource is the resource of the owners, and Kind the kind of the objects that are to be deleted.
	Resource, Kind string
	// Cause and Reason are as in package limits.
	Cause, Reason string
	Number        int
}

// scraped is a collector that calls a function at each scrape, so gauges cannot go stale: a right that was granted has no
// series.
type scraped[T any] struct {
	ask   atomic.Pointer[func() []T]
	descs []*prometheus.Desc
	// gauges sets the gauges of one answer.
	gauges func(of T, gauge func(d *prometheus.Desc, value float64, labels ...string))
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
		c.gauges(of, func(d *prometheus.Desc, value float64, labels ...string) {
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
		"Objects that were handled, by state: ready, waiting (for others, or for the cache), failing (a handler is tried again or failed for good, its filter fails, or it loops), held (its deletion is) or paused.",
		"resource", "state")
	daemons := c.describe("handwerk_daemons",
		"Daemons, each of one object, by state: running, or late, which were asked to stop and still run when their time is over.",
		"resource", "handler", "state")
	states := c.describeStates()
	age := c.describe("handwerk_informer_age_seconds",
		"Seconds since the last event or bookmark of the resource's watch. Bookmarks come about every minute.", "resource")
	c.gauges = func(s ResourceStats, gauge func(*prometheus.Desc, float64, ...string)) {
		gauge(up, number(s.Up), s.Resource)
		for feed, watched := range s.Sources {
			gauge(feeds, number(watched), s.Resource, feed)
		}
		gauge(objects, float64(s.Objects), s.Resource)
		gauge(parked, float64(s.Parked), s.Resource)
		gauge(broken, float64(s.Broken), s.Resource)
		for _, state := range Healths() {
			gauge(standing, float64(s.Health[state]), s.Resource, string(state))
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
	objects := c.describe("handwerk_index_objects", "Objects with entries in the index.", "index")
	keys := c.describe("handwerk_index_keys", "Keys of the index that have values.", "index")
	left := c.describe("handwerk_index_left_out", "Objects that the index leaves out because its function or its expressions failed for them.", "index")
	read := c.describe("handwerk_index_read", "Keys of the index that handlers have read and are woken by, counted for each of their objects.", "index")
	c.gauges = func(s IndexStats, gauge func(*prometheus.Desc, float64, ...string)) {
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
	c.gauges = func(m MissingRight, gauge func(*prometheus.Desc, float64, ...string)) {
		gauge(missing, float64(m.Namespaces), m.Resource, m.Verb)
	}
	return c
}

func newPauseCollector() *scraped[PauseStats] {
	c := &scraped[PauseStats]{}
	paused := c.describe("handwerk_paused",
		"Pauses by where they are declared: 1 for operator while the operator is paused, for namespace the number of namespaces. Objects that are paused are in handwerk_objects.", "by")
	c.gauges = func(p PauseStats, gauge func(*prometheus.Desc, float64, ...string)) {
		gauge(paused, float64(p.Number), p.By)
	}
	return c
}

func newDeletionCollector() *scraped[DeletionStats] {
	c := &scraped[DeletionStats]{}
	waiting := c.describe("handwerk_deletions_waiting",
		"Deletions that wait for limits.deletions, by why they were begun (cause) and why they wait (reason): ShareExceeded until operator release, RateExceeded for their turn. No series while none waits.",
		"resource", "kind", "cause", "reason")
	c.gauges = func(d DeletionStats, gauge func(*prometheus.Desc, float64, ...string)) {
		gauge(waiting, float64(d.Number), d.Resource, d.Kind, d.Cause, d.Reason)
	}
	return c
}
