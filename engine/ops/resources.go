// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Standing is how an object stands with an operator.
type Standing string

// The standings.
const (
	// Ready: its handlers are done.
	Ready Standing = "ready"
	// Waits: a handler waits for what others do, or the object for the cache.
	Waits Standing = "waiting"
	// Failing: a handler has failed, and is tried again or has failed for good.
	Failing Standing = "failing"
	// Held: it is to be deleted, and a handler that failed for good keeps it.
	Held Standing = "held"
)

// Standings returns all standings.
func Standings() []Standing { return []Standing{Ready, Waits, Failing, Held} }

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
	// LastEvent is when the last event or bookmark came. Zero, when none has, gives no age.
	LastEvent time.Time
}

// Resources sets what is asked for the state of the resources at each scrape. The function must
// be quick and may be called at the same time from several goroutines. A later call replaces the
// function.
func (m *Metrics) Resources(stats func() []ResourceStats) { m.resources.stats.Store(&stats) }

// resourceCollector asks for the state when it is scraped, so gauges cannot go stale.
type resourceCollector struct {
	stats atomic.Pointer[func() []ResourceStats]

	up, feeds, objects, parked, broken, age, standing *prometheus.Desc
}

func newResourceCollector() *resourceCollector {
	describe := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"resource"}, nil)
	}
	return &resourceCollector{
		up: describe("handwerk_resource_up",
			"1 while the resource is synced and its handlers run, 0 while it waits or is degraded."),
		feeds: prometheus.NewDesc("handwerk_feed_up",
			"1 while children or related objects of the resource are watched, 0 while they are not or not in every namespace; feed is as in /readyz: child/ or related/ and the name.",
			[]string{"resource", "feed"}, nil),
		objects: describe("handwerk_cache_objects",
			"Objects of the resource that the cache holds."),
		parked: describe("handwerk_parked_keys",
			"Objects that wait for the cache to catch up with the operator's own writes."),
		broken: describe("handwerk_breaker_open",
			"Objects that the breaker holds because they loop without progress."),
		standing: prometheus.NewDesc("handwerk_objects",
			"Objects that were handled, by state: ready, waiting (for others, or for the cache), failing (a handler is tried again or failed for good, or its filter fails) or held (its deletion is).",
			[]string{"resource", "state"}, nil),
		age: describe("handwerk_informer_age_seconds",
			"Seconds since the last event or bookmark of the resource's watch. Bookmarks come about every minute."),
	}
}

// Describe implements [prometheus.Collector].
func (c *resourceCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.up, c.feeds, c.objects, c.parked, c.broken, c.age, c.standing} {
		out <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *resourceCollector) Collect(out chan<- prometheus.Metric) {
	stats := c.stats.Load()
	if stats == nil {
		return
	}
	for _, s := range (*stats)() {
		gauge := func(d *prometheus.Desc, value float64) {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, s.Resource)
		}
		gauge(c.up, number(s.Up))
		for name, up := range s.Feeds {
			out <- prometheus.MustNewConstMetric(c.feeds, prometheus.GaugeValue, number(up), s.Resource, name)
		}
		gauge(c.objects, float64(s.Objects))
		gauge(c.parked, float64(s.Parked))
		gauge(c.broken, float64(s.Broken))
		for _, state := range Standings() {
			out <- prometheus.MustNewConstMetric(c.standing, prometheus.GaugeValue, float64(s.Standing[state]), s.Resource, string(state))
		}
		if !s.LastEvent.IsZero() {
			gauge(c.age, time.Since(s.LastEvent).Seconds())
		}
	}
}
