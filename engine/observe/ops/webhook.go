// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Webhooks are the metrics of webhooks.
type Webhooks struct {
	durations *prometheus.HistogramVec
	inFlight  *prometheus.GaugeVec
}

func newWebhooks() *Webhooks {
	return &Webhooks{
		durations: prometheus.NewHistogramVec(histogram(
			"handwerk_webhook_duration_seconds",
			"How long the answer to a request of the API server took, by result: allowed, denied, converted, failed, panicked, timeout, refused, invalid or cut.",
			handlerBuckets(),
		), []string{"path", "result"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "handwerk_webhooks_in_flight", Help: "Requests of the API server that have no answer yet.",
		}, []string{"path"}),
	}
}

// Reviewed notes an answer.
func (w *Webhooks) Reviewed(path, result string, took time.Duration) {
	w.durations.WithLabelValues(path, result).Observe(took.Seconds())
}

// Reviewing changes the number of requests without an answer.
func (w *Webhooks) Reviewing(path string, by int) { w.inFlight.WithLabelValues(path).Add(float64(by)) }

// Webhooks returns the metrics of webhooks.
func (m *Metrics) Webhooks() *Webhooks { return m.webhooks }
