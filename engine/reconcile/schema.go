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
	"github.com/handwerk-dev/handwerk/engine/reconcile/conditions"
)

// again is the interval at which a process without the right to read the schema asks again, and sends a rejected
// condition again.
const again = time.Minute

// errRejected says that the server rejected a condition a moment ago.
var errRejected = errors.New("the API server does not take the condition")

// ConditionsSchema knows whether one resource has conditions.
type ConditionsSchema struct {
	log     logr.Logger
	catalog *discovery.Catalog
	own     *source.Source
	outages *transport.Outages
	// hidden: caches do not show conditions, so none is offered.
	hidden bool

	mu     sync.Mutex
	failed bool
	after  time.Time // the earliest time to ask again
	// rejectedUntil is until when conditions of the engine are not sent, because the server rejected one.
	rejectedUntil time.Time
	// lacks names the missing parts of the schema that were logged last; empty for none.
	lacks string
}

// NewConditionsSchema returns the knowledge about a resource's conditions. The catalog asks the API server whether the
// schema has status.conditions. Hidden: caches do not show the conditions.
func NewConditionsSchema(log logr.Logger, c *discovery.Catalog, own *source.Source, outages *transport.Outages, hidden bool) *ConditionsSchema {
	return &ConditionsSchema{log: log, catalog: c, own: own, outages: outages, hidden: hidden}
}

// Offered returns the patch with its offered conditions set, if the resource has conditions; otherwise without them.
// Conditions that handlers have set (set, or in the patch) win. All are left out if the CRD's schema would drop some or
// all of their fields. It returns an error if the schema cannot be read now, because a handler that is done would not
// offer them again.
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

// WarnOfMissing logs at the start which fields of conditions the CRD drops. The first condition may come much later.
func (s *ConditionsSchema) WarnOfMissing(ctx context.Context) {
	if served := s.own.Resource(); !dsl.BuiltIn(served.GVR.Group) {
		_, _ = s.ask(ctx) // the first write asks again after an error
	}
}

// ask returns whether the resource has conditions. Without the right to read the CRD, it returns that there are none. It
// logs once which fields the schema of a CRD lacks.
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

// taken returns which fields of the status the engine may set: none if the server rejected one lately. The error says
// why that is unknown.
func (s *ConditionsSchema) taken(ctx context.Context) (discovery.Status, error) {
	s.mu.Lock()
	rejected := time.Until(s.rejectedUntil) > 0
	s.mu.Unlock()
	if rejected {
		return discovery.Status{}, errRejected
	}
	return s.ask(ctx)
}

// conditionRejected notes that the server rejected a condition of the engine.
func (s *ConditionsSchema) conditionRejected(err error) {
	s.mu.Lock()
	first := s.rejectedUntil.IsZero()
	s.rejectedUntil = time.Now().Add(again)
	s.mu.Unlock()
	log := s.log
	if !first || apierrors.IsForbidden(err) {
		log = log.V(1) // operators that need the right to write status get it, and this one works without
	}
	log.Info("objects do not say which handlers fail, or whether they are ready: the API server does not take the condition",
		logmark.Warning, true, "conditions", conditions.HandlersFailing+", "+dsl.Ready, "error", err.Error())
}

// Write is [patch.Write] for marks with conditions of the engine, or with status.observedGeneration. If the resource
// lacks these fields, or the server rejects them, everything else is written: the reconcile does not fail for them. Owed
// is set to whether they must be written later.
func (s *ConditionsSchema) Write(ctx context.Context, t patch.Target, wanted *dsl.Patch, marks patch.Marks, owed *bool) (patch.Result, error) {
	if len(marks.Conditions) == 0 && len(marks.RemoveConditions) == 0 && len(marks.Ready) == 0 && marks.Observed == 0 {
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
		s.conditionRejected(err)
	}
	return bare, again
}

// limited returns marks without the fields that a status does not have.
func limited(marks patch.Marks, has discovery.Status) patch.Marks {
	if !has.Conditions.Kept {
		marks.Conditions, marks.RemoveConditions, marks.Ready = nil, nil, nil
	}
	if !has.Generation {
		marks.Observed = 0
	}
	return marks
}
