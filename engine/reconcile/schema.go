// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pass

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
)

// again is how long it is not asked again whether a resource has conditions, when this process may not know, and how
// long a condition that the server did not take is not sent again.
const again = time.Minute

// errRefused says that the server did not take a condition a moment ago.
var errRefused = errors.New("the API server does not take the condition")

// ConditionsSchema knows whether one resource has conditions.
type ConditionsSchema struct {
	log     logr.Logger
	catalog *catalog.Catalog
	own     *feed.Feed
	outages *transport.Outages

	mu     sync.Mutex
	failed bool
	after  time.Time // ask again not before this
	// refused is until when conditions of the engine's own are not sent, as the server did not take one.
	refused time.Time
	// lacks names the missing parts of the schema that the log has last; empty without any.
	lacks string
}

// NewConditionsSchema returns what knows the conditions of the resource of a feed. The catalog asks the API server whether the
// schema has status.conditions.
func NewConditionsSchema(log logr.Logger, c *catalog.Catalog, own *feed.Feed, outages *transport.Outages) *ConditionsSchema {
	return &ConditionsSchema{log: log, catalog: c, own: own, outages: outages}
}

// Offered returns the patch with its offered conditions set where the resource has conditions, and without them
// otherwise. What handlers set themselves, this one or those before it (set), counts more. It is left out, too, if the schema of a CRD
// would keep a part of it or nothing. It returns an error where the schema cannot be read now: a handler that is done would not offer
// them again.
func (s *ConditionsSchema) Offered(ctx context.Context, p *dsl.Patch, set []metav1.Condition) (*dsl.Patch, error) {
	if len(p.Offered)+len(p.Conditions) == 0 {
		return p, nil
	}
	out := *p
	out.Offered = nil
	has, err := s.ask(ctx)
	if err != nil && len(p.Offered) == 0 {
		return p, nil
	}
	if err == nil && has.Lacks != "" {
		out.Conditions = nil
	}
	if err != nil || !has.Kept {
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

// WarnOfMissing logs at the start which parts of conditions the CRD does not keep. The first condition may come much later.
func (s *ConditionsSchema) WarnOfMissing(ctx context.Context) {
	if served := s.own.Resource(); !dsl.BuiltIn(served.GVR.Group) {
		_, _ = s.ask(ctx) // the first write asks again after an error
	}
}

// ask returns whether the resource has conditions; it has none if this process may not read the CRD. It logs once which
// parts the schema of a CRD lacks.
func (s *ConditionsSchema) ask(ctx context.Context) (has catalog.Conditions, err error) {
	s.mu.Lock()
	wait := time.Until(s.after)
	s.mu.Unlock()
	if wait > 0 {
		return has, nil
	}
	has, err = s.catalog.Conditions(ctx, s.own.Resource())
	if err != nil && (!apierrors.IsForbidden(err) || s.outages.Away()) {
		return has, fmt.Errorf("asking whether the resource has conditions: %w", err)
	}
	s.mu.Lock()
	failed, lacked := s.failed, s.lacks
	s.failed, s.lacks = err != nil, has.Lacks
	if err != nil {
		s.after = time.Now().Add(again)
	}
	s.mu.Unlock()
	if has.Lacks != "" && has.Lacks != lacked {
		s.log.Info("conditions are not written: the CRD would keep a part of each, or nothing", logmark.Warning, true, "reason", has.Lacks)
	}
	switch {
	case failed && err == nil:
		s.log.Info("conditions are set again")
	case !failed && err != nil:
		s.log.Info("conditions are not set, but for those that handlers insist on: whether the resource has conditions cannot be found out", logmark.Warning, true, "reason", err.Error())
	}
	return has, nil
}

// takesFailing reports whether conditions of the engine's own are to be sent: the resource has conditions,
// and the server took them lately. The error says why that is not known.
func (s *ConditionsSchema) takesFailing(ctx context.Context) (bool, error) {
	s.mu.Lock()
	refused := time.Until(s.refused) > 0
	s.mu.Unlock()
	if refused {
		return false, errRefused
	}
	has, err := s.ask(ctx)
	return has.Kept, err
}

// failingRefused notes that the server did not take one of them.
func (s *ConditionsSchema) failingRefused(err error) {
	s.mu.Lock()
	first := s.refused.IsZero()
	s.refused = time.Now().Add(again)
	s.mu.Unlock()
	log := s.log
	if !first || apierrors.IsForbidden(err) {
		log = log.V(1) // the right to write status is given to operators that need it, and this one works without
	}
	log.Info("objects do not say which handlers fail, or whether they are ready: the API server does not take the condition",
		logmark.Warning, true, "conditions", Failing+", "+dsl.Ready, "error", err.Error())
}

// Write is [patch.Write] for a wish with conditions of the engine's own. Where the resource has no conditions, or the server
// does not take them, all but these is written: they are not worth a pass that cannot be finished. Owed is set to whether they are
// to be written later, where there are some to write.
func (s *ConditionsSchema) Write(ctx context.Context, t patch.Target, wish patch.Wish, owed *bool) (patch.Result, error) {
	_, first := wish(t.Object)
	if first.Condition == nil && len(first.Mended) == 0 && first.Ready == nil {
		return patch.Write(ctx, t, wish)
	}
	without := func(live *unstructured.Unstructured) (*dsl.Patch, patch.Marks) {
		wanted, marks := wish(live)
		marks.Condition, marks.Mended, marks.Ready = nil, nil, nil
		return wanted, marks
	}
	takes, err := s.takesFailing(ctx)
	if *owed = err != nil; !takes {
		return patch.Write(ctx, t, without)
	}
	result, err := patch.Write(ctx, t, wish)
	if result.Status || result.Whole || !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		return result, err
	}
	bare, again := patch.Write(ctx, t, without)
	if *owed = again == nil; *owed {
		s.failingRefused(err)
	}
	return bare, again
}
