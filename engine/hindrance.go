// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/handwerk-dev/handwerk/dsl"
)

// hindrance is why a feed does not bring in a namespace's objects as it should.
type hindrance struct {
	phase phase
	text  string
	// missing are the verbs that are, where that is the reason.
	missing []string
	// silent: that is said already, as of a server that is away. unserved: what is not served cannot be
	// listed or watched, as is said once.
	silent, unserved bool
}

// hindrances are those of a feed, by namespace.
type hindrances map[string]hindrance

// survey is what a look at a feed's informers shows.
type survey struct {
	bad hindrances
	// well is the number of namespaces where nothing is wrong; listing are those that are not listed yet.
	well    int
	listing []string
	// refused: an informer was refused what the account may do now; it will ask again.
	refused bool
}

// survey looks at the informers. For those that are well it waits a moment, until the last callback of
// the first listing has returned.
func (f *feed) survey(ctx context.Context, missing denied) survey {
	out := survey{bad: hindrances{}}
	for ns := range missing {
		// A server that has just come back refuses for a moment what it will allow.
		out.bad[ns] = hindrance{phase: phaseForbidden, text: missing.in(ns), missing: missing[ns], silent: f.away()}
	}
	for _, ns := range f.opened() {
		h := f.newest(ns)
		state := h.State()
		switch {
		case out.bad[ns].phase != "":
		case state.Fault != nil:
			bad := faulty(state.Fault)
			bad.silent = bad.silent || f.away() // a watch that is silent does not know why
			out.bad[ns] = bad
			out.refused = out.refused || apierrors.IsForbidden(state.Fault)
		case !state.Synced || h.WaitSynced(ctx) != nil:
			out.listing = append(out.listing, ns)
		default:
			out.well++
		}
	}
	return out
}

// faulty is the hindrance that an error is.
func faulty(err error) hindrance {
	return hindrance{phase: phaseFaulty, text: err.Error(), silent: unanswered(err), unserved: apierrors.IsNotFound(err)}
}

// standing says how the feed is after a survey.
func (f *feed) standing(seen survey, missing denied) hindrance {
	before := f.health().phase
	switch {
	case len(seen.listing) > 0 && (seen.well == 0 || before != phaseRunning):
		return hindrance{phase: phaseStarting, text: "listing"}
	case seen.well > 0 || len(seen.bad) == 0:
		return hindrance{phase: phaseRunning}
	case seen.refused && len(missing) == 0 && before == phaseForbidden:
		return hindrance{phase: phaseStarting, text: "it may be listed now"}
	}
	return seen.bad.outcome(missing)
}

// outcome says how a feed is that has these hindrances in all of its namespaces.
func (all hindrances) outcome(missing denied) hindrance {
	if len(missing) > 0 {
		return hindrance{phase: phaseForbidden, text: missing.String(), silent: all.silent()}
	}
	out := hindrance{phase: phaseRunning}
	for i, ns := range slices.Sorted(maps.Keys(all)) {
		if i == 0 || out.silent && !all[ns].silent {
			out = all[ns]
		}
	}
	return out
}

// silent reports whether all of them are said already.
func (all hindrances) silent() bool {
	for _, h := range all {
		if !h.silent {
			return false
		}
	}
	return true
}

// warning tells of the namespaces that are hindered while others are not, empty when none is.
func (all hindrances) warning(missing denied) string {
	var parts []string
	if len(missing) > 0 {
		parts = append(parts, string(phaseForbidden)+": "+missing.String())
	}
	more := 0
	for _, ns := range slices.Sorted(maps.Keys(all)) {
		switch h := all[ns]; {
		case h.phase == phaseForbidden:
		case len(parts) < namesMost:
			parts = append(parts, string(h.phase)+": "+h.text)
		default:
			more++
		}
	}
	if more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}

// hinder notes what hinders the feed now. When something does not any more, and what it hid is listed,
// those who were refused are told, however long other namespaces take.
func (f *feed) hinder(now survey) {
	f.mu.Lock()
	for ns := range f.hindrances {
		if _, still := now.bad[ns]; !still {
			f.owed[ns] = true
		}
	}
	f.hindrances = now.bad
	tell := false
	for ns := range f.owed {
		if !slices.Contains(now.listing, ns) {
			delete(f.owed, ns)
			tell = true
		}
	}
	f.mu.Unlock()
	if tell && f.granted != nil {
		f.granted()
	}
}

// warn notes what is wrong in some namespaces while the feed runs, and logs it when it changes, unless
// that is said already.
func (f *feed) warn(text string, silent bool) {
	f.mu.Lock()
	before, warned := f.warning, f.warned
	f.warning, f.warned = text, text != "" && (warned || !silent)
	f.mu.Unlock()
	switch {
	case before == text && (warned || silent || text == ""):
	case text == "" && warned:
		f.log.Info("resource is watched in every namespace again")
	case text != "" && !silent:
		f.log.Info("resource is not watched well in every namespace", dsl.LogWarning, true, "reason", text)
	default:
		f.log.V(1).Info("resource is watched in other namespaces than before", "reason", text)
	}
}

// unwarn drops what is wrong in some namespaces, as the feed is degraded as a whole.
func (f *feed) unwarn() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.warning, f.warned = "", false
}

// unreadError is why a feed's objects cannot be read from the cache.
type unreadError struct {
	feed string
	hindrance
}

func (e *unreadError) Error() string {
	return fmt.Sprintf("reading %s: it is %s: %s", e.feed, e.phase, e.text)
}

// hindered returns what hinders the feed in a namespace, or how it is as a whole.
func (f *feed) hindered(namespace string) hindrance {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, ns := range []string{"", namespace} {
		if h, found := f.hindrances[ns]; found {
			return h
		}
	}
	return hindrance{phase: f.phase, text: f.message}
}

// unread returns why the objects of a namespace cannot be read.
func (f *feed) unread(namespace string) error {
	return &unreadError{f.name.String(), f.hindered(namespace)}
}

// refusal says the reason why a kind of children cannot be read in the words of the API server, when
// it is that a right is missing: then it is known from other errors by who handles them.
func (f *feed) refusal(err error) error {
	unread, is := errors.AsType[*unreadError](err)
	if !is || unread.phase != phaseForbidden {
		return err
	}
	return &refusedError{apierrors.NewForbidden(f.resource().GVR.GroupResource(), "", fmt.Errorf("the operator may not %s", unread.text)), unread}
}

// refusedError is an unreadError in the words of the API server.
type refusedError struct {
	answer *apierrors.StatusError
	unread *unreadError
}

func (e *refusedError) Error() string   { return e.answer.Error() }
func (e *refusedError) Unwrap() []error { return []error{e.answer, e.unread} }
