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

// full is the error about a kind that does not go into the register any more.
func (r *Register) full() error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("ConfigMap %s has %d kinds", r.name(), MostKinds))
}

// fault takes an error of the server. Where it is that a right is missing, the register is not asked for before one is given; where it is
// that the server does not take the register, not for a while. Both are said, once.
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
