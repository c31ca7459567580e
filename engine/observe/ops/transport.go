// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Transport counts the requests that go to the API server through next and measures how long
// they take, from the request to the end of the answer's body. Watches are counted, but their
// duration says nothing and is not measured. It fits rest.Config.Wrap.
func (m *Metrics) Transport(next http.RoundTripper) http.RoundTripper {
	return &transport{next, m}
}

type transport struct {
	next    http.RoundTripper
	metrics *Metrics
}

func newRequests() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "rest_client_requests_total",
		Help: "Requests to the API server, by status code, HTTP method and host. The code is \"<error>\" when there was no answer.",
	}, []string{"code", "method", "host"})
}

func newLatency() *prometheus.HistogramVec {
	buckets := []float64{.005, .025, .1, .25, .5, 1, 2, 4, 8, 15, 30, 60}
	return prometheus.NewHistogramVec(histogram(
		"rest_client_request_duration_seconds",
		"How long a request to the API server took until its answer was read, by HTTP method and host. Watches are left out.",
		buckets,
	), []string{"verb", "host"})
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	method, host, start := req.Method, req.URL.Host, time.Now()
	resp, err := t.next.RoundTrip(req)
	t.metrics.requests.WithLabelValues(code(resp, err), method, host).Inc()
	if watching(req) {
		return resp, err
	}
	if err != nil || resp.Body == nil || resp.StatusCode == http.StatusSwitchingProtocols {
		t.observe(req, start)
		return resp, err
	}
	resp.Body = &timedBody{ReadCloser: resp.Body, transport: t, request: req, start: start}
	return resp, nil
}

// observe observes the latency of a request that was sent at start.
func (t *transport) observe(req *http.Request, start time.Time) {
	t.metrics.latency.WithLabelValues(req.Method, req.URL.Host).Observe(time.Since(start).Seconds())
}

// WrappedRoundTripper lets client-go find the connections underneath, to close idle ones.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

func code(resp *http.Response, err error) string {
	if err != nil {
		return "<error>"
	}
	return strconv.Itoa(resp.StatusCode)
}

// watching reports whether the answer is a stream without end: a watch or a followed log.
func watching(req *http.Request) bool {
	if req.Method != http.MethodGet {
		return false
	}
	query := req.URL.Query()
	for _, key := range []string{"watch", "follow"} {
		if yes, err := strconv.ParseBool(query.Get(key)); err == nil && yes {
			return true
		}
	}
	return false
}

// timedBody observes the latency of a request when the body of its response was read to the end, or closed.
type timedBody struct {
	io.ReadCloser
	transport *transport
	request   *http.Request
	start     time.Time
	once      sync.Once
}

func (b *timedBody) observe() {
	b.once.Do(func() { b.transport.observe(b.request, b.start) })
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.observe()
	}
	return n, err
}

func (b *timedBody) Close() error {
	b.observe()
	return b.ReadCloser.Close()
}
