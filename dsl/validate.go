// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
	"github.com/handwerk-dev/handwerk/dsl/words"
)

// Validate reports all faults of the operator, joined, each a [Fault]: in its settings, resources and handlers, a
// name that cannot be part of an annotation key, and a resource that is declared twice, under whatever spelling.
// Two declarations would work on one object at the same time and share its bookkeeping. Different selectors do not help: they
// overlap, and an object that leaves one of them would lose the finalizer of the other. The engine refuses an operator with
// faults.
func (op *Operator) Validate() error {
	var found []error
	c := check{found: &found}
	op.checkName(c)
	op.checkWas(c)
	for i, pattern := range op.Scope.Namespaces {
		if err := CheckNamespace(pattern); err != nil {
			c.fault(fmt.Sprintf("scope.namespaces[%d]", i), "%w", err)
		}
	}
	if _, err := labels.Parse(op.Scope.NamespaceSelector); err != nil {
		c.fault("scope.namespaceSelector", "want a label selector: %w", err)
	}
	op.Settings.check(c)
	op.checkActivities(&found)
	if len(op.resources) == 0 {
		c.fault("resources", "want at least one")
	}
	for i, x := range op.indexes {
		x.check(check{Place{Index: x}, &found}, op.indexes[:i])
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
			of.note(Fault{First: &Place{Resource: first, Field: "resource"}}, "resource", "%s is declared twice: %s", r.Name, whereBoth(first, r))
		default:
			of.note(Fault{First: &Place{Resource: first, Field: "resource"}}, "resource", "%s has the same objects as %s: %s", r.Name, first.Name, whereBoth(first, r))
		}
		r.check(of)
	}
	op.checkCRDNames(&found)
	return errors.Join(found...)
}

// whereBoth says how two declarations of a resource become one.
func whereBoth(a, b *Resource) string {
	handled := func(r *Resource) bool { return len(r.handlers) > 0 || r.CRD != nil }
	switch {
	case handled(a) && handled(b):
		return "put the handlers of both under one"
	case handled(a) || handled(b):
		return "put its rules (validate, mutate) where its handlers and its schema are"
	}
	return "put the rules of both under one"
}

// checkName reports a name, or a domain, that cannot be part of an annotation key.
func (op *Operator) checkName(c check) {
	prefix, wrong := op.Prefix(), validation.IsDNS1123Label(op.Name)
	if op.Name == "" {
		c.fault("metadata.name", "it has no name: set Operator.Name (metadata.name in YAML)")
	} else if len(wrong) > 0 {
		c.fault("metadata.name", "want a DNS label, found %q: %s", op.Name, wrong[0])
	}
	if len(wrong) > 0 { // an empty name is a fault, too
		prefix = cmp.Or(op.Domain, bookkeeping.Domain)
	}
	if errs := validation.IsDNS1123Subdomain(prefix); len(errs) > 0 {
		c.fault("metadata.domain", "want a DNS name, found %q: %s", op.Domain, errs[0])
	}
}

func (r *Resource) check(c check) {
	for _, err := range r.wrongOwns {
		c.fault("owns", "%w", err)
	}
	r.checkHandled(c)
	for _, wrong := range r.wrongCRD {
		c.fault(strings.Join(append([]string{"schema"}, wrong.Path...), "."), "%w", wrong)
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
	c.choice("cache", string(cmp.Or(r.Cache, CacheCompact)), r.Cache)
	if len(r.Keep) > 0 && cmp.Or(r.Cache, CacheCompact) != CacheCompact {
		c.unwanted("keep", "is only for cache %s", CacheCompact)
	}
	for i, path := range r.Keep {
		if len(path) == 0 {
			c.fault(fmt.Sprintf("keep[%d]", i), "must not be empty")
		}
	}
	if r.Limits != nil {
		r.Limits.Deletions.check(c, "limits.deletions")
	}
	r.checkIgnore(c)
	r.checkReady(c)
	r.checkRelations(c)
	r.checkHeld(c)
	for i, h := range r.handlers {
		of := check{Place{Resource: r, Handler: h}, c.found}
		h.check(of, r.handlers[:i])
	}
	r.checkOutcomes(c)
	r.checkAdmissions(c)
	r.checkConversions(c)
}

// checkHandled reports a resource without handlers, unless it has admission handlers, or is one of the operator's own that others
// read.
func (r *Resource) checkHandled(c check) {
	if len(r.handlers)+len(r.admissions) == 0 && (r.CRD == nil || !r.op.reads(r)) {
		c.note(Fault{Lacks: "schedule"}, "handlers", "want at least one%s", r.elsewhere())
	}
}

// elsewhere names other places that may have the handlers.
func (r *Resource) elsewhere() string {
	if r.Open {
		return ", here or in Go (none is needed if handlers of another resource read it)"
	}
	return ""
}

// checkIgnore reports ignored paths that handlers name.
func (r *Resource) checkIgnore(c check) {
	for i, ignored := range r.Ignore {
		field := fmt.Sprintf("ignore[%d]", i)
		if len(ignored) == 0 {
			c.fault(field, "must not be empty")
			continue
		}
		for _, h := range r.handlers {
			reads := slices.Concat(h.Fields, h.asked(), h.Known.Reads.Parents)
			for _, m := range h.Labels {
				reads = append(reads, Path{"metadata", "labels", m.Key})
			}
			if at := slices.IndexFunc(reads, ignored.Leads); at >= 0 {
				c.fault(field, "handler %s reads %s, so a change of it counts", h.ID, reads[at])
			}
		}
	}
}

var handlerID = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)

// WrongID returns the fault of the handler's id; empty if it is valid.
func (h *Handler) WrongID() string {
	if handlerID.MatchString(h.ID) {
		return ""
	}
	return fmt.Sprintf("want letters, digits, '-', '_' and '.', at most 63, found %q", h.ID)
}

// check reports faults of a handler; earlier are the handlers declared before it.
func (h *Handler) check(c check, earlier []*Handler) {
	if fault := h.WrongID(); fault != "" {
		c.fault("id", "%s", fault)
	}
	if i := slices.IndexFunc(earlier, func(other *Handler) bool { return other.ID == h.ID }); i >= 0 && (h.Machine == nil || earlier[i].Machine == nil) {
		c.note(Fault{First: &Place{Resource: c.Resource, Handler: earlier[i], Field: "id"}}, "id", "the id is used twice")
	}
	h.checkMakers(c, earlier)
	for _, w := range h.invalid {
		c.fault(w.Field, "%w", w.Err)
	}
	h.checkOptions(c)
	h.checkKept(c)
	h.checkSchedule(c)
	h.checkDaemon(c)
	h.checkMachine(c, earlier)
}

// checkMakers reports an id under which steps of another handler make children or patch objects: the two would share these.
func (h *Handler) checkMakers(c check, earlier []*Handler) {
	for _, other := range earlier {
		switch {
		case other.ID == h.ID:
		case slices.Contains(slices.Concat(other.Makers, other.Known.Patches), h.ID):
			c.note(Fault{First: &Place{Resource: c.Resource, Handler: other, Field: "id"}}, "id", "a step of handler %s has this id", other.ID)
		case slices.Contains(slices.Concat(h.Makers, h.Known.Patches), other.ID):
			c.note(Fault{First: &Place{Resource: c.Resource, Handler: other, Field: "id"}}, "id", "handler %s has the id of one of its steps", other.ID)
		}
	}
}

// checkWas reports earlier ids that another handler has, or had: the two would share children and progress.
func (h *Handler) checkWas(c check) {
	for i, id := range h.Was {
		field := fmt.Sprintf("was[%d]", i)
		if !handlerID.MatchString(id) {
			c.fault(field, "want letters, digits, '-', '_' and '.', at most 63, found %q", id)
		}
		for _, other := range c.Resource.handlers {
			switch {
			case other.ID == id:
				c.note(Fault{First: &Place{Resource: c.Resource, Handler: other, Field: "id"}}, field, "a handler has this id")
			case other == h && slices.Contains(h.Was[:i], id):
				c.fault(field, "the id is named twice")
			case other != h && slices.Contains(other.Was, id):
				c.note(Fault{First: &Place{Resource: c.Resource, Handler: other, Field: "was"}}, field, "another handler had this id, too")
			}
		}
	}
}

func (h *Handler) checkAttempts(c check) {
	if h.Retries < Unlimited || min(h.Timeout, h.Deadline, h.Backoff.Initial, h.Backoff.Max) < 0 {
		c.fault("", "retries, timeout, deadline and back-off must not be negative")
	}
	if h.Deadline > 0 && h.Timeout > h.Deadline {
		c.fault("timeout", "one attempt (%v) must not take longer than all of them, which have a deadline of %v", h.Timeout, h.Deadline)
	}
	c.choice("errors", string(cmp.Or(h.Errors, ErrorsRetry)), h.Errors)
	initial, most := cmp.Or(h.Backoff.Initial, DefaultBackoffInitial), cmp.Or(h.Backoff.Max, DefaultBackoffMax)
	if initial > most {
		c.fault("backoff", "initial (%v) must not be more than max (%v)", initial, most)
	}
}

// checkField checks that the cache holds the handler's fields.
func (h *Handler) checkField(c check) {
	for _, field := range h.Fields {
		if len(field) == 0 {
			c.fault("field", "must not be empty")
			continue
		}
		if kept := c.Resource.Kept(); kept != nil {
			if lacks, _ := kept.Lacks(field); lacks {
				c.fault("field", "%s", kept.Leaves(field.String()))
			}
		}
	}
}

// checkLabels reports labels that objects cannot have.
func (h *Handler) checkLabels(c check) {
	for _, m := range h.Labels {
		checkKey(c, "labels", m.Key, m.Key)
		if faults := validation.IsValidLabelValue(m.Value); len(faults) > 0 {
			c.fault("labels", "the value %q is not one that labels may have: %s", m.Value, faults[0])
		}
	}
}

// checkAnnotations reports annotations that objects cannot have.
func (h *Handler) checkAnnotations(c check) {
	for _, m := range h.Annotations {
		checkKey(c, "annotations", m.Key, strings.ToLower(m.Key)) // as the API server does
	}
}

// checkKey reports a key of a field that objects cannot have. The API server checks the key in the form of as.
func checkKey(c check, field, key, as string) {
	if faults := validation.IsQualifiedName(as); len(faults) > 0 {
		c.fault(field, "the key %q is not one that objects may have: %s", key, faults[0])
	}
}

// checkSchedule reports a schedule without a time.
func (h *Handler) checkSchedule(c check) {
	if t := h.Timing; h.ResourceWide && (t == nil || t.Every == 0 && t.Pause == 0 && t.Cron == "") {
		c.note(Fault{From: []string{"every", "pause", "cron"}}, "", "a schedule has a time (want every, pause or cron)")
	}
}

// checkRelease reports an onFailure that has no effect, because the handler has no finalizer.
func (h *Handler) checkRelease(c check) {
	if h.Daemon == nil && forDeletions.met(h) && h.NoFinalizer && h.Release {
		c.unwanted("onFailure", "says nothing with finalizer: false, which holds no object")
	}
}

// checkAfter checks that the handlers in After are declared earlier.
func (h *Handler) checkAfter(c check) {
	earlier := c.Resource.handlers[:slices.Index(c.Resource.handlers, h)]
	for i, id := range h.After {
		h.checkAfterOne(c, fmt.Sprintf("after[%d]", i), id, earlier)
	}
}

// checkAfterOne checks one id in After.
func (h *Handler) checkAfterOne(c check, field, id string, earlier []*Handler) {
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

// checkCauses reports unknown causes, and causes that cannot occur.
func (h *Handler) checkCauses(c check) {
	if h.Daemon != nil {
		return // its cause, Running, cannot be declared
	}
	if len(h.given) == 0 {
		c.fault("causes", "it has no causes")
	}
	for i, cause := range h.given {
		at := fmt.Sprintf("causes[%d]", i)
		c.choice(at, string(cause), cause)
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

// checkNeeds reports faults of the declared rights.
func (h *Handler) checkNeeds(c check) {
	for i, need := range h.Needs {
		if c.Resource == nil && need.Resource == (ResourceName{}) && need.Kind.Empty() {
			c.fault("needs", "the need of %s is about an object, and there is none", need.Text())
			continue
		}
		need.check(c, fmt.Sprintf("needs[%d]", i))
	}
}

func (n Need) check(c check, field string) {
	if len(n.Verbs) == 0 {
		c.fault(field, "the need of %s has no verbs", n.Text())
	}
	for i, verb := range n.Verbs {
		if err := checkVerb(verb); err != nil && n.For.Empty() { // a role may have any verbs
			c.fault(fmt.Sprintf("%s.verbs[%d]", field, i), "%w", err)
		}
	}
	if faults := validation.IsDNS1123Label(n.Namespace); n.Namespace != "" && len(faults) > 0 {
		c.fault(field+".namespace", "want the name of a namespace: %s", faults[0])
	}
}
