// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
)

// offersAgain is how long it is not asked again whether a resource has conditions, when this process
// may not know.
const offersAgain = time.Minute

// offers knows whether the conditions that handlers offer are wanted by a resource.
type offers struct {
	mu    sync.Mutex
	told  bool
	after time.Time // ask again not before this
	// refused is until when the condition that says which handlers fail is not sent, as the server did
	// not take it.
	refused time.Time
}

// withOffers returns the patch with its offered conditions set, if the resource's schema has
// status.conditions, and without them otherwise. What handlers set themselves, this one or those before it,
// counts more. The error tells that it cannot be found out now: a handler that is done would not offer them
// again.
func (r *resource) withOffers(ctx context.Context, p *dsl.Patch, set []metav1.Condition) (*dsl.Patch, error) {
	if len(p.Offered) == 0 {
		return p, nil
	}
	out := *p
	out.Offered = nil
	if keeps, err := r.keepsConditions(ctx); err != nil || !keeps {
		return &out, err
	}
	out.Conditions = slices.Clone(p.Conditions)
	for _, offered := range p.Offered {
		if !slices.ContainsFunc(slices.Concat(set, out.Conditions), func(c metav1.Condition) bool { return c.Type == offered.Type }) {
			out.Conditions = append(out.Conditions, offered)
		}
	}
	return &out, nil
}

func (r *resource) keepsConditions(ctx context.Context) (bool, error) {
	o := &r.offers
	o.mu.Lock()
	wait := time.Until(o.after)
	o.mu.Unlock()
	if wait > 0 {
		return false, nil
	}
	keeps, err := r.engine.catalog.Conditions(ctx, r.own.Resource())
	if err == nil {
		r.offering()
		return keeps, nil
	}
	if !apierrors.IsForbidden(err) || r.engine.outages.Away() {
		return false, fmt.Errorf("asking whether the resource has conditions: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.told {
		r.log.Info("conditions are not set, but for those that handlers insist on: whether the resource has conditions cannot be found out", dsl.LogWarning, true, "reason", err.Error())
	}
	o.told, o.after = true, time.Now().Add(offersAgain)
	return false, nil
}

// offering says that conditions are set, after it was said that they are not.
func (r *resource) offering() {
	r.offers.mu.Lock()
	defer r.offers.mu.Unlock()
	if r.offers.told {
		r.offers.told = false
		r.log.Info("conditions are set again")
	}
}
