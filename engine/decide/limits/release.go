// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"slices"
	"strings"
	"time"
)

// Release exempts deletions from the limits until a time.
type Release struct {
	// Resource and Cause choose the deletions; empty means all. The resource may lack its version and group.
	Resource string `json:"resource,omitempty"`
	Cause    Cause  `json:"cause,omitempty"`
	// Until is when the release ends.
	Until time.Time `json:"until"`
	// By is the person who has released them, if known.
	By string `json:"by,omitempty"`
}

// lets reports whether the release includes the deletions of a pool with a cause.
func (r Release) lets(of Pool, cause Cause) bool {
	named := r.Resource == "" || r.Resource == of.Resource || strings.HasPrefix(of.Resource, r.Resource+".")
	return named && (r.Cause == "" || r.Cause == cause)
}

func (d *Deletions) isReleasedLocked(of Pool, cause Cause, now time.Time) bool {
	return slices.ContainsFunc(d.releases, func(r Release) bool { return now.Before(r.Until) && r.lets(of, cause) })
}

// Release replaces the releases that are in force. It returns the new ones, and the owners of the deletions that may
// begin because of them.
func (d *Deletions) Release(all []Release, now time.Time) (fresh []Release, wakes []Wake) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range all {
		if now.Before(r.Until) && !slices.Contains(d.releases, r) {
			fresh = append(fresh, r)
		}
	}
	d.releases = slices.DeleteFunc(slices.Clone(all), func(r Release) bool { return !now.Before(r.Until) })
	if len(fresh) == 0 {
		return nil, nil
	}
	return fresh, d.wakesLocked(func(at place, w *waiting) bool { return d.isReleasedLocked(at.Pool, w.cause, now) })
}
