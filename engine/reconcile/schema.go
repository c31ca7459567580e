// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

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
	catalog *discovery.Catalog
	own     *source.Source
	outages *transport.Outages
	// hidden: caches do not show which conditions there are, so none is offered.
	hidden bool

	mu     sync.Mutex
	failed bool
	after  time.Time // ask again not before this
	// refused is until when conditions of the engine's own are not sent, as the server did not take one.
	refused time.Time
	// lacks names the missing parts of the schema that the log has last; empty without any.
	lacks string
}

// NewConditionsSchema returns what knows the conditions of the resource of a feed. The catalog asks the API server whether the
// schema has status.conditions. Hidden: caches do not show the conditions.
func NewConditionsSchema(log logr.Logger, c *discovery.Catalog, own *source.Source, outages *transport.Outages, hidden bool) *ConditionsSchema {
	return &ConditionsSchema{log: log, catalog: c, own: own, outages: outages, hidden: hidden}
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
	if out.Offered = nil; s.hidden {
		return &out, nil
	}
	has, err := s.ask(ctx)
	if err != nil && len(p.Offered) == 0 {
		return p, nil
	}
	if err == nil && has.Conditions.Lacks != "" {
		out.Conditions = nil
	}
	if err != nil || !has.Conditions.Kept {
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
func (s *ConditionsSchema) ask(ctx context.Context) (has discovery.Status, err error) {
	s.mu.Lock()
	wait := time.Until(s.after)
	s.mu.Unlock()
	if wait > 0 {
		return has, nil
	}
	has, err = s.catalog.Status(ctx, s.own.Resource())
	if err != nil && (!apierrors.IsForbidden(err) || s.outages.Away()) {
		return has, fmt.Errorf("asking whether the resource has conditions: %w", err)
	}
	s.mu.Lock()
	failed, lacked := s.failed, s.lacks
	s.failed, s.lacks = err != nil, has.Conditions.Lacks
	if err != nil {
		s.after = time.Now().Add(again)
	}
	s.mu.Unlock()
	if lacks := has.Conditions.Lacks; lacks != "" && lacks != lacked {
		s.log.Info("conditions are not written: the CRD would keep a part of each, or nothing", logmark.Warning, true, "reason", lacks)
	}
	switch {
	case failed && err == nil:
		s.log.Info("conditions are set again")
	case !failed && err != nil:
		s.log.Info("conditions are not set, but for those that handlers insist on: whether the resource has conditions cannot be found out", logmark.Warning, true, "reason", err.Error())
	}
	return has, nil
}

// taken returns what of the engine's own is to be sent: what the resource's status has, and nothing if the server did not take it
// lately. The error says why that is not known.
func (s *ConditionsSchema) taken(ctx context.Context) (discovery.Status, error) {
	s.mu.Lock()
	refused := time.Until(s.refused) > 0
	s.mu.Unlock()
	if refused {
		return discovery.Status{}, errRefused
	}
	return s.ask(ctx)
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

// Write is [patch.Write] for marks with conditions of the engine's own, or with status.observedGeneration. Where the resource has no
// such field, or the server does not take it, all but these is written: they are not worth a reconcile that cannot be finished. Owed is set
// to whether they are to be written later, where there are some to write.
func (s *ConditionsSchema) Write(ctx context.Context, t patch.Target, wanted *dsl.Patch, marks patch.Marks, owed *bool) (patch.Result, error) {
	if marks.Condition == nil && len(marks.Mended) == 0 && marks.Ready == nil && marks.Observed == 0 {
		return patch.Write(ctx, t, wanted, marks)
	}
	none := discovery.Status{}
	has, err := s.taken(ctx)
	*owed = err != nil
	result, err := patch.Write(ctx, t, wanted, limited(marks, has))
	if has == none || result.Status || result.Whole || !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		return result, err
	}
	bare, again := patch.Write(ctx, t, wanted, limited(marks, none))
	if *owed = again == nil; *owed {
		s.failingRefused(err)
	}
	return bare, again
}

// limited returns marks without the fields that a status does not have.
func limited(marks patch.Marks, has discovery.Status) patch.Marks {
	if !has.Conditions.Kept {
		marks.Condition, marks.Mended, marks.Ready = nil, nil, nil
	}
	if !has.Generation {
		marks.Observed = 0
	}
	return marks
}
