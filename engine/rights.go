// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/handwerk-dev/handwerk/dsl"
)

const (
	// askAgain is how long it is until a right that is missing is asked for again; it doubles each
	// time. The bound is askMost, or a second for each namespace that lacks some where that is more,
	// so that however many there are they cost a request a second; and never more than askLast.
	askAgain = time.Second
	askMost  = 10 * time.Second
	askLast  = 5 * time.Minute
	// namesMost bounds how many namespaces a message names.
	namesMost = 10
)

// The verbs with which the engine writes.
const (
	patchObject = "patch"
	patchStatus = "patch status"
)

// denied are the verbs that are missing, by namespace.
type denied map[string][]string

// reads reports whether the namespace's objects may be listed and watched.
func (d denied) reads(namespace string) bool {
	return !slices.Contains(d[namespace], "list") && !slices.Contains(d[namespace], "watch")
}

func (d denied) String() string {
	var parts []string
	for namespace := range d {
		parts = append(parts, d.in(namespace))
	}
	slices.Sort(parts)
	if more := len(parts) - namesMost; more > 0 {
		parts = append(parts[:namesMost], fmt.Sprintf("and in %d more", more))
	}
	return strings.Join(parts, "; ")
}

// in tells what is missing in one namespace.
func (d denied) in(namespace string) string {
	text := strings.Join(d[namespace], ", ")
	if namespace != "" {
		text += " in namespace " + namespace
	}
	return text
}

// denial is what was found missing in a namespace, and when that is asked again.
type denial struct {
	verbs []string
	again time.Time
	wait  time.Duration
}

// access returns which of the needed verbs are missing. It asks where it does not know yet, where
// the informer, a pass or a handler was refused, and from time to time where something was missing.
// Namespaces where all is well are not asked, whatever is missing in others.
func (f *feed) access(ctx context.Context, namespaces []string) (denied, error) {
	out := denied{}
	f.forget(namespaces)
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
func (f *feed) missingIn(ctx context.Context, ns string) ([]string, error) {
	now := time.Now()
	known := f.denials[ns]
	switch {
	case known == nil && f.well(ns):
		return nil, nil
	case known != nil && now.Before(known.again):
		return known.verbs, nil
	}
	missing, err := f.ask(ctx, ns, known)
	switch {
	case err != nil && known == nil:
		return nil, err
	case err != nil:
		missing = known.verbs
		f.log.V(1).Info("asking for a right that was missing", "error", err.Error())
	}
	if len(missing) == 0 {
		delete(f.denials, ns)
	} else {
		next := &denial{verbs: missing, wait: askAgain}
		if known != nil {
			next.wait = min(2*known.wait, max(askMost, time.Duration(len(f.denials))*time.Second), askLast)
		}
		in := next.wait - rand.N(next.wait/5)
		next.again = now.Add(in)
		f.denials[ns] = next
		time.AfterFunc(in, f.nudge)
	}
	if h := f.newest(ns); known != nil && len(missing) < len(known.verbs) && h != nil && h.State().Fault != nil {
		h.Retry()
	}
	return missing, nil
}

// ask asks for the verbs in a namespace. Where some were missing, the first of them tells whether
// anything has changed.
func (f *feed) ask(ctx context.Context, ns string, known *denial) ([]string, error) {
	f.answered(ns)
	gvr, verbs := f.resource().GVR, f.verbs()
	if known != nil && slices.Contains(verbs, known.verbs[0]) {
		still, err := f.catalog.Access(ctx, gvr, ns, known.verbs[0])
		if err != nil || len(still) > 0 {
			return known.verbs, err
		}
	}
	return f.catalog.Access(ctx, gvr, ns, verbs...)
}

// forget drops what was known of namespaces that are not watched any more.
func (f *feed) forget(namespaces []string) {
	for ns := range f.denials {
		if !slices.Contains(namespaces, ns) {
			delete(f.denials, ns)
		}
	}
}

// verbs are what the engine itself does with the resource.
func (f *feed) verbs() []string {
	verbs := []string{"list", "watch"}
	if len(f.writes) > 0 || f.proves || f.source.Profile == dsl.CacheLive {
		verbs = append(verbs, "get") // after a conflict, when nobody saw an object go, and for each pass in cache live
	}
	for _, v := range f.writes {
		if v != patchStatus || f.resource().Status {
			verbs = append(verbs, v)
		}
	}
	return verbs
}

// well reports whether nothing speaks for a missing right in the namespace: its informer is there
// and was not refused, and nobody else was since the server was asked last.
func (f *feed) well(namespace string) bool {
	h := f.newest(namespace)
	f.mu.Lock()
	suspect := f.suspects[namespace]
	f.mu.Unlock()
	return h != nil && !suspect && !apierrors.IsForbidden(h.State().Fault)
}

// suspect notes that a request of the engine for an object of the namespace was refused. The rights
// are asked for, so that what is missing is shown, and it is known when it is given.
func (f *feed) suspect(namespace string) {
	f.mu.Lock()
	if _, all := f.handles[""]; all {
		namespace = ""
	}
	if f.suspects == nil {
		f.suspects = map[string]bool{}
	}
	_, known := f.suspects[namespace]
	news := !known && f.handles[namespace] != nil
	if news {
		f.suspects[namespace] = true
	}
	f.mu.Unlock()
	if news {
		f.nudge()
	}
}

// answered notes that the rights in a namespace are asked for. Refusals in the next moments do not
// make them asked for again: there may be as many as there are objects.
func (f *feed) answered(ns string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.suspects[ns] {
		return
	}
	f.suspects[ns] = false
	time.AfterFunc(askMost, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.suspects, ns)
	})
}
