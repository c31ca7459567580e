// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestAttend holds how often it is asked whether the server is back, and when all are notified that it is.
func TestAttend(t *testing.T) {
	tests := map[string]struct {
		// answers are what the server answers, from a time on; nil is that it is ready, errAway that no server answers.
		answers map[time.Duration]error
		last    time.Duration
		asked   [2]int64 // at least and at most
		backs   []time.Duration
	}{
		"a minute without a server": {
			map[time.Duration]error{0: errAway, time.Minute: nil}, 2 * time.Minute, [2]int64{48, 81}, []time.Duration{time.Minute},
		},
		"one that refuses for a moment what it will allow": {
			map[time.Duration]error{0: errAway, 20 * time.Second: errForbidden, 25 * time.Second: nil}, 2 * time.Minute, [2]int64{20, 36},
			[]time.Duration{20 * time.Second, 25 * time.Second},
		},
		"one that never says that it is ready": {
			map[time.Duration]error{0: errAway, 20 * time.Second: errForbidden}, 10 * time.Minute, [2]int64{40, 76}, []time.Duration{20 * time.Second},
		},
		"one that asks for time": {
			map[time.Duration]error{0: errAway, 20 * time.Second: errBusy, 45 * time.Second: nil}, 2 * time.Minute, [2]int64{18, 34},
			[]time.Duration{20 * time.Second, 45 * time.Second},
		},
		"one request that was lost": {
			map[time.Duration]error{0: nil}, 2 * time.Minute, [2]int64{1, 1}, nil,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, begun := NewOutages(logr.Discard()), time.Now()
				var asked atomic.Int64
				now := func() (answer error) {
					at := time.Duration(-1)
					for from, what := range tt.answers {
						if from <= time.Since(begun) && from > at {
							at, answer = from, what
						}
					}
					return answer
				}
				request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://cluster/readyz", nil)
				server := w.Transport(roundTrip(func(r *http.Request) (*http.Response, error) {
					if errors.Is(now(), errAway) {
						return nil, errAway
					}
					return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
				}))
				ask := func(context.Context) error {
					asked.Add(1)
					response, err := server.RoundTrip(request)
					if err == nil {
						_ = response.Body.Close()
					}
					return now()
				}
				var backs []time.Duration
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					w.Attend(ctx, ask, func() { backs = append(backs, time.Since(begun)) })
				}()
				w.failed(everything, errAway, time.Now(), false) // of somebody else's request
				time.Sleep(tt.last)
				cancel()
				<-done
				if n := asked.Load(); n < tt.asked[0] || n > tt.asked[1] {
					t.Errorf("it was asked %d times, want %d to %d", n, tt.asked[0], tt.asked[1])
				}
				if len(backs) != len(tt.backs) {
					t.Fatalf("all were notified at %v, want about %v", backs, tt.backs)
				}
				for i, want := range tt.backs {
					if late := backs[i] - want; late < 0 || late > 6*time.Second || name != "one that asks for time" && late > 1500*time.Millisecond {
						t.Errorf("all were notified at %v, want about %v", backs, tt.backs)
					}
				}
			})
		})
	}
}

var (
	errAway      = errors.New("connection refused")
	errForbidden = errors.New("forbidden")
	errBusy      = apierrors.NewTooManyRequests("later", 5)
)
