// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/backoff"
	"github.com/handwerk-dev/handwerk/engine/ops"
	"github.com/handwerk-dev/handwerk/engine/rbac"
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

// lack has the missing verbs in a namespace, and the time of the next check. The zero value lacks no verb.
type lack struct {
	verbs []string
	again time.Time
	wait  time.Duration
}

// access returns the missing verbs. It checks namespaces that were not checked, those where a request was refused, and, with
// back-off, those with a missing verb. It does not check other namespaces again.
func (f *Feed) access(ctx context.Context, namespaces []string) (missingVerbs, error) {
	maps.DeleteFunc(f.lacking, func(ns string, _ lack) bool { return !slices.Contains(namespaces, ns) })
	out := missingVerbs{}
	var fault error
	for _, ns := range namespaces {
		missing, err := f.missingIn(ctx, ns)
		if err != nil {
			fault = err
			continue // this namespace alone is not known
		}
		if len(missing) > 0 {
			out[ns] = missing
		}
	}
	if fault != nil && len(f.opened()) == 0 {
		return nil, fault
	}
	return out, nil
}

// missingIn returns which verbs are missing in one namespace, and notes it.
func (f *Feed) missingIn(ctx context.Context, ns string) ([]string, error) {
	now := time.Now()
	known := f.lacking[ns]
	lacks := known.verbs != nil
	if now.Before(known.again) || !lacks && f.unsuspected(ns) {
		return known.verbs, nil
	}
	missing, err := f.ask(ctx, ns, known.verbs)
	switch {
	case err != nil && !lacks:
		return nil, err
	case err != nil:
		missing = known.verbs
		f.settings.Log.V(1).Info("checking a missing right failed; it is retried", "error", err.Error())
	}
	if len(missing) == 0 {
		delete(f.lacking, ns)
	} else {
		wait, in := backoff.Next(known.wait, askAgain, min(max(askMost, time.Duration(len(f.lacking))*time.Second), askLast))
		f.lacking[ns] = lack{verbs: missing, again: now.Add(in), wait: wait}
		time.AfterFunc(in, f.Nudge)
	}
	if h := f.newest(ns); len(missing) < len(known.verbs) && h != nil && h.State().Fault != nil {
		h.Retry()
	}
	return missing, nil
}

// ask checks the verbs in a namespace. If some were missing, it checks the first of them alone, until that is granted.
func (f *Feed) ask(ctx context.Context, ns string, known []string) ([]string, error) {
	f.mu.Lock()
	if f.suspects[ns].open {
		f.suspects[ns] = suspicion{asked: time.Now()}
	}
	f.mu.Unlock()
	gvr, verbs := f.Resource().GVR, f.Verbs()
	if len(known) > 0 && slices.Contains(verbs, known[0]) {
		still, err := f.cluster.Catalog.Access(ctx, gvr, ns, known[0])
		if err != nil || len(still) > 0 {
			return known, err
		}
	}
	return f.cluster.Catalog.Access(ctx, gvr, ns, verbs...)
}

// Verbs are what the engine itself does with the resource, as in "list" and "patch status". What the server
// serves is not known before [Feed.Known]; until then they are all that there may be.
func (f *Feed) Verbs() []string {
	s := f.settings
	verbs := []string{"list", "watch"}
	if s.Patches || s.ObservedGeneration || s.Gets || s.Source.Profile == dsl.CacheLive {
		verbs = append(verbs, "get") // after a conflict, to confirm deletions, and for each pass with cache live
	}
	if s.Patches {
		verbs = append(verbs, "patch")
	}
	if s.ObservedGeneration && (f.Resource().Status || !f.Known()) {
		verbs = append(verbs, "patch status")
	}
	return verbs
}

// Asks reports whether the feed itself checks a right. The empty namespace stands for all in scope.
func (f *Feed) Asks(r rbac.Rule) bool {
	verb := strings.TrimSpace(r.Verb + " " + r.Subresource)
	if !f.Known() || f.Resource().GVR.GroupResource() != (schema.GroupResource{Group: r.Group, Resource: r.Resource}) || !slices.Contains(f.Verbs(), verb) {
		return false
	}
	names, _ := f.namespaces()
	return r.Namespace == "" || slices.Contains(names, r.Namespace)
}

// Missing are the rights that the feed lacks, in no order.
func (f *Feed) Missing() []ops.MissingRight {
	var out []ops.MissingRight
	for text, n := range f.health.Missing() {
		verb, subresource, found := strings.Cut(text, " ")
		one := ops.MissingRight{Resource: f.Resource().GVR.GroupResource().String(), Verb: verb, Namespaces: n}
		if found {
			one.Resource += "/" + subresource
		}
		out = append(out, one)
	}
	return out
}

// suspicion follows from a refused request: a right may be missing.
type suspicion struct {
	// open is true until the rights are checked. asked is the time of the last check.
	open  bool
	asked time.Time
}

// unsuspected reports whether the namespace has an informer, and no request was refused since the last check.
func (f *Feed) unsuspected(namespace string) bool {
	if h := f.newest(namespace); h == nil || apierrors.IsForbidden(h.State().Fault) {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.suspects[namespace].open
}

// Suspect is called when a request of the engine for an object of the namespace was refused. The feed checks its rights, shows the
// missing ones, and finds out when they are granted. Further refusals cause no check for a moment: there may be one for each
// object.
func (f *Feed) Suspect(namespace string) {
	f.mu.Lock()
	if f.informers[""] != nil {
		namespace = ""
	}
	s := f.suspects[namespace]
	opens := !s.open && time.Since(s.asked) >= askMost && f.informers[namespace] != nil
	if opens {
		f.suspects[namespace] = suspicion{open: true}
	}
	f.mu.Unlock()
	if opens {
		f.Nudge()
	}
}
