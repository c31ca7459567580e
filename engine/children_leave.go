// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/child"
	"github.com/handwerk-dev/handwerk/engine/claim"
)

// outOfSight makes ready to write the record of an object that the cache does not show any more. It may be out of
// sight alone, and live: what is made to see it off is found again by the record then as it would be otherwise.
func (p *pass) outOfSight(ctx context.Context) error {
	live, err := p.r.engine.reader(ctx, p.r.own.Resource().GVR, p.key)
	switch {
	case err != nil:
		return fmt.Errorf("reading it: %w", err)
	case live == nil || live.GetUID() != p.object.GetUID():
		return dsl.Permanent(errOwnerGone)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ties.base = live
	return nil
}

// leftBehind takes what was made to see the object off out of its record, and returns the annotation: should the
// object be back one day, and leave again, that is not to be taken for what is to be made then.
func (p *pass) leftBehind(live *unstructured.Unstructured) map[string]string {
	key := p.r.engine.op.ChildrenAnnotation()
	record, err := child.ParseRecord(live.GetAnnotations()[key], live.GetUID())
	if err != nil {
		return nil // it was said when it was read
	}
	var made []child.Place
	for _, place := range record.Places() {
		if p.farewell(record, place) {
			made = append(made, place)
		}
	}
	if len(made) == 0 {
		return nil
	}
	text, err := record.Without(made...).Encode(live.GetUID())
	if err != nil {
		return nil // it was encoded before, and was longer
	}
	return map[string]string{key: text}
}

// farewell reports whether a handler that runs for deletions alone has made what is at a place. Of an object that
// lives that is of a departure that is over.
func (p *pass) farewell(record *child.Record, place child.Place) bool {
	title, _ := record.Title(place)
	spec, _ := child.ParseTitle(title)
	at := claim.HandlerOf(p.r.rules.handlers, spec.Handler)
	return at >= 0 && claim.Lasts(p.r.rules.handlers[at])
}
