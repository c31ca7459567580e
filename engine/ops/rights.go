// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// MissingRight is a right that the operator's account lacks at the moment of a scrape.
type MissingRight struct {
	// Resource is what it is about, with its group and subresource, as in "foos.example.com/status",
	// Verb what may not be done with it. Each pair may occur once.
	Resource, Verb string
	// Namespaces is in how many it is known to be missing; 1 also when that is everywhere.
	Namespaces int
}

// MissingRights sets what is asked for the rights that are missing at each scrape. The function must be
// quick and may be called at the same time from several goroutines. A later call replaces the function.
func (m *Metrics) MissingRights(missing func() []MissingRight) { m.rights.missing.Store(&missing) }

// rightsCollector asks for what is missing when it is scraped, so a right that was given has no series.
type rightsCollector struct {
	missing atomic.Pointer[func() []MissingRight]
	desc    *prometheus.Desc
}

func newRightsCollector() *rightsCollector {
	return &rightsCollector{desc: prometheus.NewDesc("handwerk_missing_rights",
		"Rights that the operator needs and its account lacks: in how many namespaces, 1 also for all of them. No series while nothing is missing.",
		[]string{"resource", "verb"}, nil)}
}

// Describe implements [prometheus.Collector].
func (c *rightsCollector) Describe(out chan<- *prometheus.Desc) { out <- c.desc }

// Collect implements [prometheus.Collector].
func (c *rightsCollector) Collect(out chan<- prometheus.Metric) {
	missing := c.missing.Load()
	if missing == nil {
		return
	}
	for _, m := range (*missing)() {
		out <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(m.Namespaces), m.Resource, m.Verb)
	}
}
