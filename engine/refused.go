// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
)

// passRefusedMost bounds the wait after a pass was refused for lack of a right. What the feeds ask for themselves wakes
// those who wait for it; this is for rights that only passes know of.
const passRefusedMost = time.Minute

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
