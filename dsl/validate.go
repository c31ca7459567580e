// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
	"github.com/handwerk-dev/handwerk/dsl/words"
)

// Validate reports every fault of the operator, joined, each a [Fault]: a name that cannot be part of an
// annotation key, resources whose objects are declared twice, under whatever spelling (two would work
// on one object at the same time and share its bookkeeping), and what settings, resources and handlers have
// wrong. The engine refuses an operator with faults.
func (op *Operator) Validate() error {
	var found []error
	c := check{found: &found}
	op.checkName(c)
	for i, pattern := range op.Scope.Namespaces {
		if err := CheckNamespace(pattern); err != nil {
			c.fault(fmt.Sprintf("scope.namespaces[%d]", i), "%w", err)
		}
	}
	op.Settings.check(c)
	if len(op.resources) == 0 {
		c.fault("resources", "want at least one")
	}
	seen := map[schema.GroupResource]*Resource{}
	for _, r := range op.resources {
		of := check{Place{Resource: r}, &found}
		first, twice := seen[r.Name.Objects()]
		switch {
		case r.fault != nil:
			of.fault("resource", "%w", r.fault)
		case !twice:
			seen[r.Name.Objects()] = r
		case first.Name == r.Name:
			of.note(Fault{First: &Place{Resource: first, Field: "resource"}}, "resource", "%s is declared twice", r.Name)
		default:
			of.note(Fault{First: &Place{Resource: first, Field: "resource"}}, "resource", "%s has the same objects as %s: put the handlers of both under one", r.Name, first.Name)
		}
		r.check(of)
	}
	return errors.Join(found...)
}

// checkName reports a name, or a domain, that cannot be part of an annotation key.
func (op *Operator) checkName(c check) {
	if op.Name == "" {
		c.fault("metadata.name", "it has no name: set Operator.Name (metadata.name in YAML)")
		return
	}
	prefix := op.Prefix()
	if errs := validation.IsDNS1123Label(op.Name); len(errs) > 0 {
		c.fault("metadata.name", "want a DNS label, found %q: %s", op.Name, errs[0])
		prefix = cmp.Or(op.Domain, bookkeeping.Domain)
	}
	if errs := validation.IsDNS1123Subdomain(prefix); len(errs) > 0 {
		c.fault("metadata.domain", "want a DNS name, found %q: %s", op.Domain, errs[0])
	}
}

func (s *Settings) check(c check) {
	if s.Burst > 0 && s.QPS == 0 {
		c.note(Fault{Unwanted: true, Lacks: "settings.qps"}, "settings.burst", "needs qps")
	}
	if s.GracePeriod < 0 || s.QPS < 0 || s.Burst < 0 {
		c.fault("settings", "no time and no number must be negative")
	}
	s.LeaderElection.check(c)
}

func (e *LeaderElection) check(c check) {
	const at = "settings.leaderElection."
	only := func(allowed bool, what, field string, given bool) {
		if !allowed && given {
			c.unwanted(at+field, "is only for %s", what)
		}
	}
	if e.Mode != "" {
		elected, lease := e.Mode != LeaderNone, e.Mode == LeaderLease
		only(elected, "modes lease and life", "name", e.Name != "")
		only(elected, "modes lease and life", "namespace", e.Namespace != "")
		only(lease, "mode lease", "leaseDuration", e.LeaseDuration != 0)
		only(lease, "mode lease", "renewDeadline", e.RenewDeadline != 0)
		only(lease, "mode lease", "retryPeriod", e.RetryPeriod != 0)
	}
	if faults := validation.IsDNS1123Subdomain(e.Name); e.Name != "" && len(faults) > 0 {
		c.fault(at+"name", "want the name of an object: %s", faults[0])
	}
	if faults := validation.IsDNS1123Label(e.Namespace); e.Namespace != "" && len(faults) > 0 {
		c.fault(at+"namespace", "want a namespace: %s", faults[0])
	}
	if e.Mode == LeaderLease {
		e.checkPeriods(c, at)
	}
}

// checkPeriods checks that a leader gives up before a standby takes over, and tries more than once
// before that. The fault is at what is given.
func (e *LeaderElection) checkPeriods(c check, at string) {
	duration := cmp.Or(e.LeaseDuration, 15*time.Second)
	deadline := cmp.Or(e.RenewDeadline, 10*time.Second)
	retry := cmp.Or(e.RetryPeriod, 2*time.Second)
	if duration <= deadline {
		c.either(at+"leaseDuration", at+"renewDeadline", e.LeaseDuration != 0, e.RenewDeadline != 0, "leaseDuration (%v) must be more than renewDeadline (%v)", duration, deadline)
	}
	if float64(deadline) <= 1.2*float64(retry) {
		c.either(at+"renewDeadline", at+"retryPeriod", e.RenewDeadline != 0, e.RetryPeriod != 0, "renewDeadline (%v) must be more than 1.2 times retryPeriod (%v)", deadline, retry)
	}
}

func (r *Resource) check(c check) {
	for _, err := range r.wrongOwns {
		c.fault("owns", "%w", err)
	}
	if len(r.handlers) == 0 {
		c.note(Fault{Lacks: "schedule"}, "handlers", "want at least one")
	}
	if r.Resync < 0 || r.Workers < 0 {
		c.fault("", "resync and workers must not be negative")
	}
	if _, err := labels.Parse(r.LabelSelector); err != nil {
		c.fault("selector", "want a label selector: %w", err)
	}
	if _, err := fields.ParseSelector(r.FieldSelector); err != nil {
		c.fault("selector.fields", "want a field selector such as status.phase=Running: %w", err)
	}
	if !slices.Contains([]CacheProfile{"", CacheCompact, CacheMetadata, CacheLive}, r.Cache) {
		c.fault("cache", "unknown cache %q: want %s, %s or %s", r.Cache, CacheCompact, CacheMetadata, CacheLive)
	}
	if len(r.Keep) > 0 && cmp.Or(r.Cache, CacheCompact) != CacheCompact {
		c.unwanted("keep", "is only for cache %s", CacheCompact)
	}
	r.checkRelations(c)
	for i, h := range r.handlers {
		of := check{Place{Resource: r, Handler: h}, c.found}
		h.check(of, r.handlers[:i])
		if r.ObservedGeneration && h.LooksPast() {
			c.unwanted("observedGeneration", "cannot tell what handler %s has seen: it needs field: spec and old: false", h.ID)
		}
	}
}

func (r *Resource) checkRelations(c check) {
	first := map[string]string{}
	for i, relation := range r.relations {
		at := fmt.Sprintf("related[%d].", i)
		if !celName.MatchString(relation.Name) {
			c.fault(at+"name", "want letters, digits and '_', as expressions use it, found %q", relation.Name)
		} else if earlier, twice := first[relation.Name]; twice {
			c.note(Fault{First: &Place{Resource: r, Field: earlier}}, at+"name", "the name is used twice")
		} else {
			first[relation.Name] = at + "name"
		}
		if relation.Resource.Resource == "" {
			c.fault(at+"resource", "it has no resource")
		}
		if _, err := labels.Parse(relation.LabelSelector); err != nil {
			c.fault(at+"selector", "want a label selector: %w", err)
		}
	}
}

var handlerID = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)

// WrongID says what is wrong with the handler's id; empty when nothing is.
func (h *Handler) WrongID() string {
	if handlerID.MatchString(h.ID) {
		return ""
	}
	return fmt.Sprintf("want letters, digits, '-', '_' and '.', at most 63, found %q", h.ID)
}

// check checks a handler that is declared after others.
func (h *Handler) check(c check, earlier []*Handler) {
	if fault := h.WrongID(); fault != "" {
		c.fault("id", "%s", fault)
	}
	if i := slices.IndexFunc(earlier, func(other *Handler) bool { return other.ID == h.ID }); i >= 0 {
		c.note(Fault{First: &Place{Resource: c.Resource, Handler: earlier[i], Field: "id"}}, "id", "the id is used twice")
	}
	for _, w := range h.invalid {
		c.fault(w.Field, "%w", w.Err)
	}
	h.checkCauses(c)
	h.checkField(c)
	h.checkAttempts(c)
	for i, need := range h.Needs {
		need.check(c, fmt.Sprintf("needs[%d]", i))
	}
	h.checkTiming(c)
	h.checkWhole(c)
	h.checkDeletion(c)
	for i, id := range h.After {
		h.checkAfter(c, fmt.Sprintf("after[%d]", i), id, earlier)
	}
}

func (h *Handler) checkAttempts(c check) {
	if h.Retries < Unlimited || min(h.Timeout, h.Backoff.Initial, h.Backoff.Max) < 0 {
		c.fault("", "retries, timeout and back-off must not be negative")
	}
	initial, most := cmp.Or(h.Backoff.Initial, DefaultBackoffInitial), cmp.Or(h.Backoff.Max, DefaultBackoffMax)
	if initial > most {
		c.fault("backoff", "initial (%v) must not be more than max (%v)", initial, most)
	}
}

// checkField checks that the cache holds what the handler looks at.
func (h *Handler) checkField(c check) {
	for _, field := range h.Fields {
		if len(field) == 0 || slices.Contains([]string{"metadata", "apiVersion", "kind"}, field[0]) {
			continue
		}
		if c.Resource.Cache == CacheMetadata {
			c.fault("field", "cache metadata does not hold it")
		}
		if keep := c.Resource.Keep; len(keep) > 0 && !slices.ContainsFunc(keep, func(kept Path) bool { return kept.Covers(field) }) {
			c.fault("field", "keep leaves it out of the cache")
		}
	}
}

// checkWhole reports what a handler that runs for the resource as a whole cannot have.
func (h *Handler) checkWhole(c check) {
	if !h.ResourceWide {
		return
	}
	t := h.Timing
	if t == nil || t.Every == 0 && t.Cron == "" {
		c.fault("", "a schedule has a time (want every or cron)")
	}
	for _, has := range []struct {
		field string
		any   bool
	}{
		{"causes", len(h.Causes) > 1}, {"when", h.When != nil}, {"field", len(h.Fields) > 0}, {"labels", len(h.Labels) > 0},
		{"annotations", len(h.Annotations) > 0}, {"idle", t != nil && t.Idle > 0}, {"after", len(h.After) > 0},
	} {
		if has.any {
			c.unwanted(has.field, "is not for a schedule, which has no one object")
		}
	}
}

// checkDeletion checks the options of delete handlers. A cause that the code brings along is the code's own
// affair.
func (h *Handler) checkDeletion(c check) {
	given := slices.Contains(h.given, Delete)
	for field, set := range map[string]bool{"finalizer": h.NoFinalizer, "onFailure": h.Release} {
		if set && !given && len(h.Causes) > 0 {
			c.unwanted(field, "is only for handlers with cause delete")
		}
	}
}

// checkAfter checks that what the handler comes after is declared before it.
func (h *Handler) checkAfter(c check, field, id string, earlier []*Handler) {
	named := func(other *Handler) bool { return other.ID == id }
	switch {
	case slices.ContainsFunc(earlier, named):
	case id == h.ID:
		c.fault(field, "a handler cannot come after itself")
	case slices.ContainsFunc(c.Resource.handlers, named):
		c.fault(field, "handler %q is declared later; handlers run in declared order", id)
	default:
		var names []string
		for _, other := range earlier {
			if other.ID != "" {
				names = append(names, other.ID)
			}
		}
		c.fault(field, "unknown handler %q (%s)", id, words.Hint(id, names))
	}
}

// checkCauses reports causes that are unknown, or that cannot come about.
func (h *Handler) checkCauses(c check) {
	if len(h.given) == 0 {
		c.fault("causes", "it has no causes")
	}
	for i, cause := range h.given {
		at := fmt.Sprintf("causes[%d]", i)
		if cause != Reconcile && !slices.Contains(Causes(), cause) {
			c.fault(at, "unknown cause %q (want %s, or one of %v)", cause, Reconcile, Causes())
		}
		if lack := cause.unmet(c.Resource, h); lack != nil && !h.ResourceWide {
			c.note(Fault{Lacks: lack.field}, at, "%s", lack.fault)
		}
	}
	alone := slices.IndexFunc(h.Causes, func(cause Cause) bool { return cause.row().alone })
	if alone >= 0 && len(h.Causes) > 1 {
		c.fault("causes", "it has the cause %s, beside which there are no others", h.Causes[alone])
	}
	if alone >= 0 && len(h.Fields) > 0 {
		c.fault("field", "it has the cause %s, for which no field is looked at", h.Causes[alone])
	}
}

func (n Need) check(c check, field string) {
	if len(n.Verbs) == 0 {
		c.fault(field, "the need of %s has no verbs", n.Text())
	}
	for i, verb := range n.Verbs {
		if err := checkVerb(verb); err != nil {
			c.fault(fmt.Sprintf("%s.verbs[%d]", field, i), "%w", err)
		}
	}
	if faults := validation.IsDNS1123Label(n.Namespace); n.Namespace != "" && len(faults) > 0 {
		c.fault(field+".namespace", "want the name of a namespace: %s", faults[0])
	}
}

// checkTiming reports times that contradict each other.
func (h *Handler) checkTiming(c check) {
	t := h.Timing
	if t == nil {
		return
	}
	if t.Every < 0 || t.Idle < 0 {
		c.fault("every", "every and idle must not be negative")
	}
	if t.Every > 0 && t.Cron != "" {
		c.unwanted("every", "excludes cron")
	}
	if t.TimeZone != "" && t.Cron == "" {
		c.note(Fault{Unwanted: true, Lacks: "cron"}, "timeZone", "is only for cron")
	}
	switch never := t.Every == 0 && t.Idle == 0 && t.Cron == ""; {
	case never && t.Jitter != 0:
		c.note(Fault{Unwanted: true, Lacks: "every"}, "jitter", "is only for timers (every, cron or idle)")
	case never && t.TimeZone == "" && !h.ResourceWide:
		c.fault("", "it has a timer without a time (want every, cron or idle)")
	}
	t.checkCron(c)
}

func (t *Timing) checkCron(c check) {
	if t.Cron != "" {
		if err := checkZone(t.TimeZone); err != nil {
			c.fault("timeZone", "%w", err)
		} else if _, err := parseCron(t.Cron, t.TimeZone); err != nil {
			c.fault("cron", "%w", err)
		}
	}
}
