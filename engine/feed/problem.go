// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/handwerk-dev/handwerk/dsl"
)

// state is how a feed is, as a whole or in one namespace.
type state struct {
	phase Phase
	text  string
	// missing are the verbs that are, where that is the reason.
	missing []string
	// silent: the log tells of that already, as of a server that is away. unserved: what is not served cannot
	// be listed or watched, as is said once.
	silent, unserved bool
}

// faulty is the state that an error makes.
func (f *Feed) faulty(err error) state {
	return state{phase: Faulty, text: err.Error(), silent: f.settings.Told(err), unserved: apierrors.IsNotFound(err)}
}

// problems are why a feed does not bring in objects as it should, by namespace.
type problems map[string]state

// survey is what a look at a feed's informers shows.
type survey struct {
	problems problems
	// well is the number of namespaces where nothing is wrong; listing are those that are not listed yet.
	well    int
	listing []string
	// refused: an informer was refused what the account may do now; it will ask again.
	refused bool
}

// survey looks at the informers. For those that are well it waits a moment, until the last callback of
// the first listing has returned.
func (f *Feed) survey(ctx context.Context, missing missingVerbs) survey {
	out := survey{problems: problems{}}
	for ns := range missing {
		// A server that has just come back refuses for a moment what it will allow.
		out.problems[ns] = state{phase: Forbidden, text: missing.in(ns), missing: missing[ns], silent: f.settings.Away()}
	}
	for _, ns := range f.opened() {
		h := f.newest(ns)
		now := h.State()
		switch {
		case missing[ns] != nil:
		case now.Fault != nil:
			bad := f.faulty(now.Fault)
			bad.silent = bad.silent || f.settings.Away() // a watch that is silent does not know why
			out.problems[ns] = bad
			out.refused = out.refused || apierrors.IsForbidden(now.Fault)
		case !now.Synced || h.WaitSynced(ctx) != nil:
			out.listing = append(out.listing, ns)
		default:
			out.well++
		}
	}
	return out
}

// standing says how the feed is after a survey.
func (f *Feed) standing(seen survey) state {
	before := f.Status().Phase
	switch {
	case len(seen.listing) > 0 && (seen.well == 0 || before != Running):
		return state{phase: Starting, text: "listing"}
	case seen.well > 0 || len(seen.problems) == 0:
		return state{phase: Running}
	case seen.refused && len(seen.problems.missing()) == 0 && before == Forbidden:
		return state{phase: Starting, text: "it may be listed now"}
	}
	return seen.problems.outcome()
}

// missing are the verbs that are.
func (all problems) missing() missingVerbs {
	out := missingVerbs{}
	for ns, p := range all {
		if len(p.missing) > 0 {
			out[ns] = p.missing
		}
	}
	return out
}

// outcome says how a feed is that has these problems in all of its namespaces.
func (all problems) outcome() state {
	if missing := all.missing(); len(missing) > 0 {
		return state{phase: Forbidden, text: missing.String(), silent: all.silent()}
	}
	out := state{phase: Running}
	for i, ns := range slices.Sorted(maps.Keys(all)) {
		if i == 0 || out.silent && !all[ns].silent {
			out = all[ns]
		}
	}
	return out
}

// silent reports whether the log tells of all of them already.
func (all problems) silent() bool {
	for _, p := range all {
		if !p.silent {
			return false
		}
	}
	return true
}

// String tells of the namespaces that have problems while others have none, empty when none has.
func (all problems) String() string {
	var parts []string
	if missing := all.missing(); len(missing) > 0 {
		parts = append(parts, string(Forbidden)+": "+missing.String())
	}
	more := 0
	for _, ns := range slices.Sorted(maps.Keys(all)) {
		switch p := all[ns]; {
		case p.phase == Forbidden:
		case len(parts) < namesMost:
			parts = append(parts, string(p.phase)+": "+p.text)
		default:
			more++
		}
	}
	if more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}

// setProblems notes the feed's problems. When one is over, and the objects that it hid are listed, those who were
// refused are told, however long other namespaces take.
func (f *Feed) setProblems(now survey) {
	f.mu.Lock()
	for ns := range f.problems {
		if _, still := now.problems[ns]; !still {
			f.recovered[ns] = true
		}
	}
	f.problems = now.problems
	tell := false
	for ns := range f.recovered {
		if !slices.Contains(now.listing, ns) {
			delete(f.recovered, ns)
			tell = true
		}
	}
	f.mu.Unlock()
	if tell && f.settings.Granted != nil {
		f.settings.Granted()
	}
}

// stateIn returns how the feed is in a namespace where it has a problem, or else how it is as a whole.
func (f *Feed) stateIn(namespace string) state {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, ns := range []string{"", namespace} {
		if p, found := f.problems[ns]; found {
			return p
		}
	}
	return f.state
}

// warn notes what is wrong in some namespaces while the feed runs, and logs it when it changes, unless
// that is said already.
func (f *Feed) warn(all problems) {
	text, silent, log := all.String(), all.silent(), f.settings.Log
	f.mu.Lock()
	before, warned := f.warning, f.warned
	f.warning, f.warned = text, text != "" && (warned || !silent)
	f.mu.Unlock()
	switch {
	case before == text && (warned || silent || text == ""):
	case text == "" && warned:
		log.Info("resource is watched in every namespace again")
	case text != "" && !silent:
		log.Info("resource is not watched well in every namespace", dsl.LogWarning, true, "reason", text)
	default:
		log.V(1).Info("resource is watched in other namespaces than before", "reason", text)
	}
}

// unwarn drops what is wrong in some namespaces, as the feed is degraded as a whole.
func (f *Feed) unwarn() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.warning, f.warned = "", false
}
