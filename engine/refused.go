// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/progress"
)

// refusedMost and passRefusedMost bound the wait after a handler or a pass was refused for lack of a
// right. What the feeds ask for themselves wakes those who wait for it; this is for rights that only
// handlers know of, as that to create a child.
const (
	refusedMost     = 30 * time.Second
	passRefusedMost = time.Minute
)

// passItself stands for the pass's own requests among the handlers that were refused: its write, and
// its look for an object that nobody saw go.
const passItself = ""

// refused notes how a handler, or one of the pass's own requests, ended: whether a right was missing.
func (r *resource) refused(key cache.ObjectName, handler string, err error) {
	missing := apierrors.IsForbidden(err)
	if r.box.Refused(key, handler, missing) && !missing {
		r.engine.access.Retry()
	}
	if missing && handler == passItself {
		r.own.Suspect(key.Namespace)
	}
}

// bounded returns the record with a wait that is not too long for one who was refused. Whoever asked
// for a longer one keeps it.
func bounded(r progress.Record, h *dsl.Handler, err error, now time.Time) progress.Record {
	_, asked := dsl.IsTemporary(err)
	if r.Done || asked || !apierrors.IsForbidden(err) {
		return r
	}
	if most := now.Add(max(refusedMost, h.Backoff.Initial)); r.Due.After(most) {
		r.Due = most
	}
	return r
}
