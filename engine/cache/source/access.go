// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/backoff"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
)

const (
	// askAgain is how long it is until a right that is missing is asked for again; it doubles each
	// time. The bound is askMost, or a second for each namespace that lacks some where that is more,
	// so that however many there are they cost a request a second; and never more than askLast.
	askAgain = time.Second
	askMost  = 10 * time.Second
	askLast  = 5 * time.Minute
)

// missingVerbs are the verbs that are missing, by namespace.
type missingVerbs map[string][]string

// reads reports whether the namespace's objects may be listed and watched.
func (m missingVerbs) reads(namespace string) bool {
	return !slices.Contains(m[namespace], "list") && !slices.Contains(m[namespace], "watch")
}

// access knows which of the rights are missing that the engine itself needs for a resource. The feed's own goroutine uses it, apart
// from suspect and verbs.
type access struct {
	at        *Location
	informers *informers
	catalog   *discovery.Catalog
	log       logr.Logger
	// wake gets a signal when a missing right is to be checked again.
	wake chan<- struct{}
	// verbs are those that the engine itself uses on the resource; see [Source.Verbs].
	verbs []string
	// foreseen is an answer for the first check; nil later.
	foreseen *foresight
	// lacking has the missing rights by namespace.
	lacking map[string]lack

	mu sync.Mutex
	// suspects are namespaces where a request was refused.
	suspects map[string]suspicion
}

// lack has the missing verbs in a namespace, and the time of the next check. The zero value lacks no verb.
type lack struct {
	verbs []string
	again time.Time
	wait  time.Duration
}

// suspicion follows from a refused request: a right may be missing.
type suspicion struct {
	// open is true until the rights are checked. asked is the time of the last check.
	open  bool
	asked time.Time
}

func newAccess(at *Location, in *informers, from *discovery.Catalog, s Settings, wake chan<- struct{}) *access {
	needed := []string{"list", "watch"}
	if s.Patches || s.Gets || s.Source.Profile == dsl.CacheLive {
		needed = append(needed, "get") // after a conflict, to confirm deletions, and for each pass with cache live
	}
	if s.Patches {
		needed = append(needed, "patch")
	}
	return &access{
		at: at, informers: in, catalog: from, log: s.Log, wake: wake, verbs: needed,
		lacking: map[string]lack{}, suspects: map[string]suspicion{},
	}
}

// check returns the missing verbs. It checks namespaces that were not checked, those where a request was refused, and, with
// back-off, those with a missing verb. It does not check other namespaces again.
func (a *access) check(ctx context.Context, namespaces []string) (missingVerbs, error) {
	maps.DeleteFunc(a.lacking, func(ns string, _ lack) bool { return !slices.Contains(namespaces, ns) })
	out := missingVerbs{}
	var fault error
	now := time.Now()
	due := slices.DeleteFunc(slices.Clone(namespaces), func(ns string) bool { return !a.due(ns, now) })
	answers := a.askAll(ctx, due)
	a.foreseen = nil
	for _, ns := range namespaces {
		missing := a.lacking[ns].verbs
		if answer, asked := answers[ns]; asked {
			var err error
			if missing, err = a.enter(ns, now, answer); err != nil {
				fault = err
				continue // this namespace alone is not known
			}
		}
		if len(missing) > 0 {
			out[ns] = missing
		}
	}
	if fault != nil && len(a.informers.opened()) == 0 {
		return nil, fault
	}
	return out, nil
}

// due reports whether the rights in a namespace are to be asked for.
func (a *access) due(ns string, now time.Time) bool {
	known := a.lacking[ns]
	return !now.Before(known.again) && (known.verbs != nil || !a.unsuspected(ns))
}

// answer says which verbs are missing in a namespace, or why that could not be asked.
type answer struct {
	missing []string
	err     error
}

// asksAtOnce bounds the namespaces whose rights are asked for at the same time.
const asksAtOnce = 8

// askAll asks for the rights in namespaces. If the account has them in the whole cluster, one question answers for all namespaces
// about which nothing was asked so far.
func (a *access) askAll(ctx context.Context, namespaces []string) map[string]answer {
	out := make(map[string]answer, len(namespaces))
	unasked := func(ns string) bool { return a.lacking[ns].verbs == nil && a.informers.newest(ns) == nil }
	fresh := slices.DeleteFunc(slices.Clone(namespaces), func(ns string) bool { return !unasked(ns) })
	if len(fresh) > 1 || len(fresh) == 1 && fresh[0] != "" && a.foreseen.about("") {
		if missing, err := a.missing(ctx, ""); err == nil && len(missing) == 0 {
			namespaces = slices.DeleteFunc(slices.Clone(namespaces), unasked)
			for _, ns := range fresh {
				out[ns] = answer{}
			}
		}
	}
	answers := make([]answer, len(namespaces))
	var asking sync.WaitGroup
	turns := make(chan struct{}, asksAtOnce)
	for i, ns := range namespaces {
		turns <- struct{}{}
		known := a.lacking[ns].verbs
		asking.Go(func() {
			answers[i].missing, answers[i].err = a.ask(ctx, ns, known)
			<-turns
		})
	}
	asking.Wait()
	for i, ns := range namespaces {
		out[ns] = answers[i]
	}
	return out
}

// enter notes which verbs are missing in one namespace, and returns them.
func (a *access) enter(ns string, now time.Time, said answer) ([]string, error) {
	known := a.lacking[ns]
	lacks := known.verbs != nil
	missing, err := said.missing, said.err
	switch {
	case err != nil && !lacks:
		return nil, err
	case err != nil:
		missing = known.verbs
		a.log.V(1).Info("checking a missing right failed; it is retried", "error", err.Error())
	}
	if len(missing) == 0 {
		delete(a.lacking, ns)
	} else {
		wait, in := backoff.Next(known.wait, askAgain, min(max(askMost, time.Duration(len(a.lacking))*time.Second), askLast))
		a.lacking[ns] = lack{verbs: missing, again: now.Add(in), wait: wait}
		time.AfterFunc(in, func() { signal(a.wake) })
	}
	if h := a.informers.newest(ns); len(missing) < len(known.verbs) && h != nil && h.State().Fault != nil {
		h.Retry()
	}
	return missing, nil
}

// ask checks the verbs in a namespace. If some were missing, it checks the first of them alone, until that is granted.
func (a *access) ask(ctx context.Context, ns string, known []string) ([]string, error) {
	a.mu.Lock()
	if a.suspects[ns].open {
		a.suspects[ns] = suspicion{asked: time.Now()}
	}
	a.mu.Unlock()
	if len(known) > 0 && slices.Contains(a.verbs, known[0]) {
		still, err := a.catalog.Access(ctx, a.at.Resource().GVR, ns, known[0])
		if err != nil || len(still) > 0 {
			return known, err
		}
	}
	return a.missing(ctx, ns)
}

// unsuspected reports whether the namespace has an informer, and no request was refused since the last check.
func (a *access) unsuspected(namespace string) bool {
	if h := a.informers.newest(namespace); h == nil || apierrors.IsForbidden(h.State().Fault) {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.suspects[namespace].open
}

// suspect notes that a request in a watched namespace was refused, and reports whether the rights are to be checked for that. After
// a check, refusals cause no other one for a moment.
func (a *access) suspect(namespace string) (check bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.suspects[namespace]
	if s.open || time.Since(s.asked) < askMost {
		return false
	}
	a.suspects[namespace] = suspicion{open: true}
	return true
}
