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
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/backoff"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
)

const (
	// askAgain is the wait before a missing right is checked again; it doubles each time. Its bound is askMost, or a
	// second for each namespace with a missing right if that is longer, and never more than askLast. So all checks
	// together cost about a request a second.
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

// access knows which of the rights that the engine itself needs for a resource are missing. Only the source's goroutine
// uses it, apart from suspect and verbs.
type access struct {
	at        *Location
	informers *informers
	catalog   *discovery.Catalog
	log       logr.Logger
	// wake gets a signal when a missing right has to be checked again.
	wake chan<- struct{}
	// verbs are the verbs that the engine itself uses on the resource; see [Source.Verbs].
	verbs []string
	// object is the name of the only object that the source watches; empty for all.
	object string
	// foreseen is an answer for the first check; nil later.
	foreseen *foresight
	// lacking has the missing rights by namespace.
	lacking map[string]lack

	mu sync.Mutex
	// suspects are namespaces where a request was rejected.
	suspects map[string]suspicion
}

// lack has the missing verbs in a namespace, and the time of the next check. The zero value lacks no verb.
type lack struct {
	verbs []string
	again time.Time
	wait  time.Duration
}

// suspicion follows from a rejected request: a right may be missing.
type suspicion struct {
	// open is true until the rights are checked. asked is the time of the last check.
	open  bool
	asked time.Time
}

func newAccess(at *Location, in *informers, from *discovery.Catalog, s Settings, wake chan<- struct{}) *access {
	needed := []string{"list", "watch"}
	if s.Patches || s.Gets || s.Source.Profile == dsl.CacheLive {
		needed = append(needed, "get") // after a conflict, to confirm deletions, and for each reconcile with cache live
	}
	if s.Patches {
		needed = append(needed, "patch")
	}
	return &access{
		at: at, informers: in, catalog: from, log: s.Log, wake: wake, verbs: needed, object: s.Object,
		lacking: map[string]lack{}, suspects: map[string]suspicion{},
	}
}

// check returns the missing verbs. It checks new namespaces, namespaces where a request was rejected and, with back-off,
// namespaces with a missing verb. It does not check other namespaces again.
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
				continue // only this namespace is unknown
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

// due reports whether the rights in a namespace have to be checked.
func (a *access) due(ns string, now time.Time) bool {
	known := a.lacking[ns]
	return !now.Before(known.again) && (known.verbs != nil || !a.unsuspected(ns))
}

// answer has the missing verbs in a namespace, or the error of the check.
type answer struct {
	missing []string
	err     error
}

// asksAtOnce bounds the namespaces whose rights are checked at the same time.
const asksAtOnce = 8

// askAll checks the rights in namespaces. If the account has them in the whole cluster, one request answers for all
// namespaces that were not checked so far.
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

// enter records the answer for one namespace, and returns its missing verbs.
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

// ask checks the verbs in a namespace. If some were missing, it checks only the first of them until that is granted.
func (a *access) ask(ctx context.Context, ns string, known []string) ([]string, error) {
	a.mu.Lock()
	if a.suspects[ns].open {
		a.suspects[ns] = suspicion{asked: time.Now()}
	}
	a.mu.Unlock()
	if len(known) > 0 && slices.Contains(a.verbs, known[0]) {
		still, err := a.catalog.Access(ctx, a.at.Resource().GVR, a.objects(ns), known[0])
		if err != nil || len(still) > 0 {
			return known, err
		}
	}
	return a.missing(ctx, ns)
}

// objects returns the objects of a namespace that the rights are about.
func (a *access) objects(namespace string) cache.ObjectName {
	return cache.ObjectName{Namespace: namespace, Name: a.object}
}

// unsuspected reports whether the namespace has an informer, and no request was rejected since the last check.
func (a *access) unsuspected(namespace string) bool {
	if h := a.informers.newest(namespace); h == nil || apierrors.IsForbidden(h.State().Fault) {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.suspects[namespace].open
}

// suspect records that a request in a watched namespace was rejected. It reports whether the rights have to be checked
// for that. After a check, rejections cause no other one for a moment.
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
