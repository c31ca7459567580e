// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// slow is a body that takes a second for each byte.
type slow struct{ io.Reader }

func (s slow) Read(p []byte) (int, error) {
	time.Sleep(time.Second)
	return s.Reader.Read(p[:1])
}
func (slow) Close() error { return nil }

func TestTransportMeasuresUntilTheAnswerIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := ops.NewMetrics()
		get := func() *http.Response {
			rt := m.Transport(tripper(func(*http.Request) (*http.Response, error) {
				time.Sleep(2 * time.Second)
				return &http.Response{StatusCode: 200, Body: slow{strings.NewReader("abc")}}, nil
			}))
			resp, err := rt.RoundTrip(httptest.NewRequest("GET", "http://api:6443/apis", nil))
			if err != nil {
				t.Fatal(err)
			}
			return resp
		}
		resp := get()
		if n, err := testutil.GatherAndCount(m.Registry(), "rest_client_request_duration_seconds"); n != 0 || err != nil {
			t.Errorf("before the body was read: %d series, %v; want none", n, err)
		}
		if _, err := io.ReadAll(resp.Body); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // what the caller does then is not the request's time
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		// Two seconds for the answer, four reads of one: three bytes and the end.
		wantSum(t, m, "rest_client_request_duration_seconds", 1, 6)
		if err := get().Body.Close(); err != nil {
			t.Fatal(err)
		}
		wantSum(t, m, "rest_client_request_duration_seconds", 2, 8)
	})
}

func TestTransportCounts(t *testing.T) {
	tests := map[string]struct {
		method, path string
		status       int
		err          error
		counted      string
		measured     bool
	}{
		"an answer is counted and measured":          {"PATCH", "/apis/x", 409, nil, `code="409",host="api:6443",method="PATCH"`, true},
		"no answer is counted as an error":           {"GET", "/apis/x", 0, errors.New("refused"), `code="<error>",host="api:6443",method="GET"`, true},
		"a watch is counted and not measured":        {"GET", "/apis/x?watch=true", 200, nil, `code="200",host="api:6443",method="GET"`, false},
		"watch=1 is a watch too":                     {"GET", "/apis/x?watch=1", 200, nil, `code="200",host="api:6443",method="GET"`, false},
		"watch=false is none":                        {"GET", "/apis/x?watch=false", 200, nil, `code="200",host="api:6443",method="GET"`, true},
		"a followed log is counted and unmeasured":   {"GET", "/log?follow=true", 200, nil, `code="200",host="api:6443",method="GET"`, false},
		"a switched protocol is measured up to it":   {"POST", "/exec", 101, nil, `code="101",host="api:6443",method="POST"`, true},
		"a watch that is refused is not measured":    {"GET", "/apis/x?watch=true", 403, nil, `code="403",host="api:6443",method="GET"`, false},
		"a failing request of a watch is unmeasured": {"GET", "/x?watch=true", 0, errors.New("no"), `code="<error>",host="api:6443",method="GET"`, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := ops.NewMetrics()
			body := io.NopCloser(strings.NewReader("abc"))
			rt := m.Transport(tripper(func(*http.Request) (*http.Response, error) {
				if test.err != nil {
					return nil, test.err
				}
				return &http.Response{StatusCode: test.status, Body: body}, nil
			}))
			resp, err := rt.RoundTrip(httptest.NewRequest(test.method, "http://api:6443"+test.path, nil))
			if !errors.Is(err, test.err) {
				t.Errorf("error: got %v, want %v", err, test.err)
			}
			if test.status == http.StatusSwitchingProtocols && resp.Body != body {
				t.Errorf("the connection of a switched protocol was wrapped in %T", resp.Body)
			}
			if err == nil {
				if err := resp.Body.Close(); err != nil {
					t.Fatal(err)
				}
			}
			want(t, m, "rest_client_requests_total", "rest_client_requests_total{"+test.counted+"} 1")
			n, err := testutil.GatherAndCount(m.Registry(), "rest_client_request_duration_seconds")
			if err != nil || (n == 1) != test.measured {
				t.Errorf("durations: got %d series, %v; want measured %v", n, err, test.measured)
			}
		})
	}
}

func TestTransportLetsClientGoFindWhatItWraps(t *testing.T) {
	inner := &http.Transport{}
	wrapped, ok := ops.NewMetrics().Transport(inner).(utilnet.RoundTripperWrapper)
	if !ok || wrapped.WrappedRoundTripper() != inner {
		t.Errorf("unwrapping: got %v, want the inner transport", wrapped)
	}
}

// request sends one request through the metrics' transport.
func request(t *testing.T, m *ops.Metrics, method, path string, status int) {
	t.Helper()
	rt := m.Transport(tripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Body: http.NoBody}, nil
	}))
	resp, err := rt.RoundTrip(httptest.NewRequest(method, "http://api:6443"+path, nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
}

// scrape returns what /metrics says.
func scrape(t *testing.T, m *ops.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler(logr.Discard()).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("GET /metrics: %d", w.Code)
	}
	return w.Body.String()
}
