// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
)

// shown is how many keys the log shows.
const shown = 5

// full returns the error about a kind for which the register has no room.
func (r *Register) full() error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("ConfigMap %s has %d kinds", r.server.id(), mostKinds))
}

// fault handles an error of the server. After a missing right, the register is not used until a right is granted; after a rejected
// write, not for a while. Both are logged, once.
func (r *Register) fault(err error) (again bool, granted <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	untaken := apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err)
	if !apierrors.IsForbidden(err) && !untaken {
		return true, nil
	}
	if !r.refusal.refused {
		values := []any{logmark.Warning, true, "configMap", r.server.id(), "error", err.Error()}
		if r.known.immutable() {
			values = append(values, "advice", "it is immutable: make it again without immutable: true")
		}
		r.log.Info("kinds of children cannot be registered; a later version leaves children behind if it no longer makes their kind", values...)
	}
	r.refusal.begin(untaken, time.Now())
	return false, r.refusal.granted
}
