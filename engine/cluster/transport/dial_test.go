// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// trip answers a request.
type trip func(*http.Request) (*http.Response, error)

func (t trip) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// instead is a transport that takes the place of the one that it wraps.
type instead struct{ http.RoundTripper }

func (i instead) Transport(http.RoundTripper) http.RoundTripper { return i.RoundTripper }

// TestTheFence holds that any round tripper can be the fence: work goes through it, and the lock does not.
func TestTheFence(t *testing.T) {
	var noted, sent []string
	note := func(lines *[]string, err error) trip {
		return func(r *http.Request) (*http.Response, error) {
			*lines = append(*lines, r.Method+" "+r.URL.Path+" by "+r.UserAgent())
			return nil, err
		}
	}
	c, err := Dial(Settings{
		Config: &rest.Config{Host: "http://server", Transport: note(&sent, errors.New("it is down"))}, Operator: dsl.New("op"),
		Fence:   instead{note(&noted, errors.New("it was noted"))},
		Metrics: ops.NewMetrics(), Outages: NewOutages(logr.Discard()),
	})
	if err != nil {
		t.Fatal(err)
	}
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	if err := c.Dynamic.Resource(pods).Namespace("a").Delete(t.Context(), "one", metav1.DeleteOptions{}); err == nil {
		t.Error("it was deleted")
	}
	if _, err := c.Lock.CoordinationV1().Leases("a").Get(t.Context(), "op-leader", metav1.GetOptions{}); err == nil {
		t.Error("there is a lease")
	}
	if diff := cmp.Diff([]string{"DELETE /api/v1/namespaces/a/pods/one by handwerk/op"}, noted); diff != "" {
		t.Errorf("the fence has seen (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"GET /apis/coordination.k8s.io/v1/namespaces/a/leases/op-leader by handwerk/op"}, sent); diff != "" {
		t.Errorf("the server has seen (-want +got):\n%s", diff)
	}
}

func TestLimits(t *testing.T) {
	for name, test := range map[string]struct {
		settings dsl.Settings
		qps      float32
		burst    int
	}{
		"none":                         {dsl.Settings{}, -1, 0},
		"a burst is twice as much":     {dsl.Settings{QPS: 10}, 10, 21},
		"a burst that is given":        {dsl.Settings{QPS: 10, Burst: 12}, 10, 12},
		"a burst without a limit, too": {dsl.Settings{Burst: 12}, -1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if qps, burst := limit(test.settings); qps != test.qps || burst != test.burst {
				t.Errorf("got %v and %d, want %v and %d", qps, burst, test.qps, test.burst)
			}
		})
	}
	if got := lockTimeout(3 * time.Second); got != 1500*time.Millisecond {
		t.Errorf("of 3 s the lock's requests have %v", got)
	}
	if got := lockTimeout(time.Second); got != time.Second {
		t.Errorf("of 1 s the lock's requests have %v", got)
	}
}
