// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
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
	for namespace, verbs := range d {
		text := strings.Join(verbs, ", ")
		if namespace != "" {
			text += " in namespace " + namespace
		}
		parts = append(parts, text)
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}

// access asks which of the needed verbs are missing. While all is well nothing is asked.
func (f *feed) access(ctx context.Context, namespaces []string) (denied, error) {
	out := denied{}
	for _, ns := range namespaces {
		if f.well(ns) {
			continue
		}
		missing, err := f.catalog.Access(ctx, f.resource().GVR, ns, f.verbs()...)
		if err != nil {
			return nil, err
		}
		if len(missing) > 0 {
			out[ns] = missing
		}
	}
	return out, nil
}

// verbs are what the engine itself does with the resource.
func (f *feed) verbs() []string {
	verbs := []string{"list", "watch"}
	if len(f.writes) > 0 || f.source.Profile == dsl.CacheLive {
		verbs = append(verbs, "get") // after a conflict, and for each pass in cache live
	}
	for _, v := range f.writes {
		if v != patchStatus || f.resource().Status {
			verbs = append(verbs, v)
		}
	}
	return verbs
}

// well reports whether the namespace's informer runs and nothing was found missing.
func (f *feed) well(namespace string) bool {
	f.mu.Lock()
	h := f.handles[namespace]
	running := f.phase == phaseRunning
	f.mu.Unlock()
	return h != nil && running && h.State().Fault == nil
}
