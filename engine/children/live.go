// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/children/apply"
)

var _ dsl.LiveChildren = (*children)(nil)

// Live implements [dsl.LiveChildren]. It asks the server, because a cache may lack what another process wrote while it
// led. A cache also does not show which object a new owner takes over.
func (c *children) Live(ctx context.Context, desired any, spec dsl.ChildSpec) (*unstructured.Unstructured, error) {
	ctx, done, err := c.span.Enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading child: %w", err)
	}
	defer done()
	w, err := c.want(ctx, desired, spec)
	if err != nil {
		return nil, err
	}
	s := c.session
	if applied := s.lister.kept(w.id); applied != nil {
		return applied, nil // the server has answered with it
	}
	live, err := s.family.settings.Host.Read(ctx, w.gvr, w.key)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", w.place().Describe(), err)
	}
	if live == nil {
		return nil, nil
	}
	if s.family.renamer.Finds(live) {
		live = s.family.renamer.Renamed(live)
	}
	judge := w.applier
	judge.Settled = &apply.Settled{Memory: &apply.SettledMemory{}} // nothing is applied, so nothing is remembered
	if _, err := judge.Stale(w.object, live); err != nil {
		return nil, nil // Apply returns this error to the handler
	}
	return live, nil
}
