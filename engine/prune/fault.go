// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
)

// shown is how many keys the log shows.
const shown = 5

// full returns the error about a kind for which the register has no room.
func (r *Register) full() error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("ConfigMap %s has %d kinds", r.name(), MostKinds))
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
	if !r.refused {
		values := []any{logmark.Warning, true, "configMap", r.name(), "error", err.Error()}
		if fixed, _, _ := unstructured.NestedBool(r.contentLocked(), "immutable"); fixed {
			values = append(values, "advice", "it is immutable: make it again without immutable: true")
		}
		r.settings.Log.Info("kinds of children cannot be registered; a later version leaves children behind if it no longer makes their kind", values...)
	}
	r.refused, r.again = true, time.Time{}
	if untaken {
		r.again = time.Now().Add(writeAgain)
	}
	return false, r.granted
}

// contentLocked is the ConfigMap as it was seen last.
func (r *Register) contentLocked() map[string]any {
	if r.object == nil {
		return nil
	}
	return r.object.Object
}
