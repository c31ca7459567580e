// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package leadership_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestOneTenantsEditsCostFewReadsOfTheLease has somebody edit an object many times a second, while a handler of it writes its
// status: each such write meets a conflict.
func TestOneTenantsEditsCostFewReadsOfTheLease(t *testing.T) {
	for _, mode := range []dsl.LeaderMode{dsl.LeaderLease, dsl.LeaderLife} {
		t.Run(string(mode), func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: scene.Syncs, Play: func(s *scene.Stage) {
				var reads, conflicts atomic.Int32
				s.Forbid("watch", scene.Leases)
				s.Create(`{apiVersion: v1, kind: Pod, metadata: {name: op-0}}`)
				s.Start(scene.Replica(&s.Journal, "first", mode), countRequests(&reads, func(r *http.Request, _ int) bool {
					return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/leases/")
				}), countRequests(&conflicts, func(r *http.Request, code int) bool {
					return r.Method == http.MethodPatch && code == http.StatusConflict
				}), editBeforeStatusWrites(s))
				s.Advance(time.Second)
				s.Create(scene.Web)
				s.Advance(time.Second)

				const lasts = 4 * time.Second
				reads.Store(0)
				conflicts.Store(0)
				for begun, n := time.Now(), int64(1); time.Since(begun) < lasts; n++ {
					s.Resize(n)
					s.Advance(5 * time.Millisecond)
				}
				// In mode life the lock is read in each retry period anyway.
				most := int32(lasts/(2*time.Second)) + 1
				if mode == dsl.LeaderLife {
					most *= 2
				}
				if conflicts.Load() < 100 || reads.Load() > most {
					s.T.Errorf("%d conflicts cost %d reads of the Lease, want %d at most", conflicts.Load(), reads.Load(), most)
				}
			}})
		})
	}
}

// countRequests counts requests.
func countRequests(n *atomic.Int32, which func(r *http.Request, code int) bool) func(*engine.Settings) {
	return func(e *engine.Settings) {
		e.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return scene.RoundTripper(func(r *http.Request) (*http.Response, error) {
				response, err := next.RoundTrip(r)
				if err == nil && which(r, response.StatusCode) {
					n.Add(1)
				}
				return response, err
			})
		})
	}
}

// editBeforeStatusWrites has somebody edit web right before each write of its status.
func editBeforeStatusWrites(s *scene.Stage) func(*engine.Settings) {
	return func(e *engine.Settings) {
		var n atomic.Int64
		e.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return scene.RoundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/web/status") && n.Add(1)%2 == 1 {
					s.Set(n.Load(), "spec", "other")
				}
				return next.RoundTrip(r)
			})
		})
	}
}
