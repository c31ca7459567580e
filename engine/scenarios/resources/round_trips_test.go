// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package resources_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// trip is how long each request takes.
const trip = 20 * time.Millisecond

// trips notes after how many round trips something happened for the first time. The zero value has none.
type trips struct {
	begun time.Time

	mu    sync.Mutex
	first map[string]int
}

func (n *trips) note(what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.first == nil {
		n.first = map[string]int{}
	}
	if _, noted := n.first[what]; !noted {
		n.first[what] = int(time.Since(n.begun) / trip)
	}
}

func (n *trips) of(what string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if after, noted := n.first[what]; noted {
		return after
	}
	return -1
}

// delays makes each request take one round trip.
func (n *trips) delays(s *engine.Settings) {
	s.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return scene.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/foos") {
				n.note("listing")
			}
			<-time.After(trip)
			return next.RoundTrip(r)
		})
	})
}

// TestAStartTakesFewRoundTrips holds after how many requests that wait for each other the first listing is sent, and the first reconcile
// begins: what needs no other answer is asked for at once.
func TestAStartTakesFewRoundTrips(t *testing.T) {
	for name, test := range map[string]struct {
		prepare       func(*scene.Stage)
		listing, pass int
	}{
		// Discovery, with the rights beside it; the listing.
		"in the whole cluster": {func(*scene.Stage) {}, 1, 2},
		"in one namespace":     {inNamespaces("default"), 1, 2},
		"in two namespaces":    {inNamespaces("default", "kube-system"), 1, 2},
		// The namespaces have to be listed before.
		"in namespaces by a glob": {inNamespaces("def*"), 2, 3},
		// An account without rights in the whole cluster is asked about in each namespace after that.
		"with rights in each of two namespaces": {func(s *scene.Stage) {
			inNamespaces("default", "kube-system")(s)
			s.Forbid("list", scene.Foos, "elsewhere")
		}, 2, 3},
		// The Lease is read, written, and those of namesakes are listed: then the term begins.
		"with a Lease": {func(s *scene.Stage) {
			s.Operator.Settings.LeaderElection = dsl.LeaderElection{Mode: dsl.LeaderLease, Namespace: "default"}
		}, 1, 3},
	} {
		t.Run(name, func(t *testing.T) {
			n := &trips{}
			scene.Play(t, scene.Scenario{
				Operator: func(foo *dsl.Resource, j *kit.Journal) {
					foo.Owns("deployments.v1.apps")
					foo.OnReconcile("look", func(context.Context, *dsl.Request) error { n.note("pass"); return nil })
				},
				Play: func(s *scene.Stage) {
					test.prepare(s)
					s.Create(scene.Web)
					n.begun = time.Now()
					s.Adjust = append(s.Adjust, n.delays, func(e *engine.Settings) { e.Namespace = "default" })
					s.Launch()
					s.Advance(time.Second)
				},
			})
			if listing, pass := n.of("listing"), n.of("pass"); listing != test.listing || pass != test.pass {
				t.Errorf("the first listing is sent after %d round trips, and the first pass begins after %d; want %d and %d", listing, pass, test.listing, test.pass)
			}
		})
	}
}

// inNamespaces makes an operator work in namespaces alone.
func inNamespaces(patterns ...string) func(*scene.Stage) {
	return func(s *scene.Stage) { s.Operator.Scope.Namespaces = patterns }
}
