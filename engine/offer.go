// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
)

// offersAgain is how long it is not asked again whether a resource has conditions, when that could
// not be found out.
const offersAgain = time.Minute

// offers knows whether the conditions that handlers offer are wanted by a resource.
type offers struct {
	mu    sync.Mutex
	told  bool
	after time.Time // ask again not before this
}

// withOffers returns the patch with its offered conditions set, if the resource's schema has
// status.conditions, and without them otherwise. What a handler sets itself counts more.
func (r *resource) withOffers(ctx context.Context, p *dsl.Patch) *dsl.Patch {
	if len(p.Offered) == 0 {
		return p
	}
	out := *p
	out.Offered = nil
	if !r.keepsConditions(ctx) {
		return &out
	}
	out.Conditions = slices.Clone(p.Conditions)
	for _, offered := range p.Offered {
		if !slices.ContainsFunc(out.Conditions, func(c metav1.Condition) bool { return c.Type == offered.Type }) {
			out.Conditions = append(out.Conditions, offered)
		}
	}
	return &out
}

func (r *resource) keepsConditions(ctx context.Context) bool {
	o := &r.offers
	o.mu.Lock()
	wait := time.Until(o.after)
	o.mu.Unlock()
	if wait > 0 {
		return false
	}
	keeps, err := r.engine.catalog.Conditions(ctx, r.own.resource())
	if err == nil {
		return keeps
	}
	if ctx.Err() != nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.told {
		r.log.Info("conditions that handlers offer are not set: it cannot be found out whether the resource has conditions", "reason", err.Error())
	}
	o.told, o.after = true, time.Now().Add(offersAgain)
	return false
}
