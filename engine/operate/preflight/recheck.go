// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

const (
	// settling is how long a Recheck waits after a change for further ones: CRDs come in groups.
	settling = 2 * time.Second
	// mostLooks is how often it checks after a change: after 2, 8 and 32 seconds.
	mostLooks = 3
)

// Recheck checks an operator's expressions against the schemas of the cluster while the operator runs: when a resource
// begins to be served or handled, and when a CRD changes. It shows and logs contradictions, and stops no process: an
// expression that cannot be evaluated fails by itself.
//
// Without expressions it sends no requests.
type Recheck struct {
	operator Operator
	indexes  []*dsl.IndexSpec
	catalog  *discovery.Catalog
	served   iter.Seq2[dsl.ResourceName, discovery.Resource]
	log      logr.Logger
	wake     chan struct{}
	// again: a CRD has changed, so the same kinds may have other schemas.
	again atomic.Bool

	// schemas are kept from check to check while more checks follow; nil otherwise, because they are large. looked are
	// the kinds of the last check, and checked the resources and indexes. Only Run's goroutine uses them.
	schemas *discovery.Schemas
	looked  []schema.GroupVersionKind
	checked []checkable

	mu       sync.Mutex
	findings map[checkable][]string // the contradictions; another declaration of a resource has its own
}

// checkable is a resource or an index.
type checkable interface {
	CheckSchemas(dsl.Knowledge) (faults, warnings []error)
}

// Operator has the resources that are checked.
type Operator interface {
	// Resources returns the resources that the operator works on now.
	Resources() []*dsl.Resource
}

// NewRecheck returns a Recheck of an operator's indexes and present resources. Nothing runs before Run. The catalog
// reads schemas. Served yields the served resources that expressions name, with the operator's names for them.
func NewRecheck(
	operator Operator, indexes []*dsl.IndexSpec, c *discovery.Catalog, served iter.Seq2[dsl.ResourceName, discovery.Resource], log logr.Logger,
) *Recheck {
	return &Recheck{
		operator: operator, indexes: indexes, catalog: c, served: served, log: log, wake: make(chan struct{}, 1), findings: map[checkable][]string{},
	}
}

// specs yields the indexes and the resources that have checks.
func (c *Recheck) specs(yield func(checkable) bool) {
	for _, x := range c.indexes {
		if len(x.Checks) > 0 && !yield(x) {
			return
		}
	}
	for _, r := range c.operator.Resources() {
		if len(r.Checks) > 0 && !yield(r) {
			return
		}
	}
}

// named returns the key for the log, and the name for the checks.
func named(spec checkable) (what, name string) {
	switch spec := spec.(type) {
	case *dsl.IndexSpec:
		return "index", spec.Name
	case *dsl.Resource:
		return "resource", spec.Name.String()
	}
	return "", ""
}

// Wake starts a check soon, if served or handled resources have changed. It never blocks.
func (c *Recheck) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// CRDChanged starts a check soon, because a CRD was added, changed or deleted. It never blocks.
func (c *Recheck) CRDChanged() {
	c.again.Store(true)
	c.Wake()
}

// Run checks after each wake-up, until ctx ends. Schemas are published a moment after a CRD has changed, without an
// event. So it repeats the check a few times, at growing intervals.
func (c *Recheck) Run(ctx context.Context) {
	timer := time.NewTimer(settling)
	timer.Stop()
	defer timer.Stop()
	looks := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
			looks = 0
			timer.Reset(settling)
		case <-timer.C:
			looked := c.look(ctx, looks > 0)
			if looks++; looked && looks < mostLooks {
				timer.Reset(settling << (2 * looks))
			} else {
				c.schemas = nil // they are large, and the next change may be far off
			}
		}
	}
}

// look checks every resource if something has changed, or anyhow. It returns whether it has checked.
func (c *Recheck) look(ctx context.Context, anyhow bool) bool {
	specs, found := slices.Collect(c.specs), newServed()
	c.keep(specs)
	if len(specs) == 0 {
		c.looked, c.checked = nil, nil
		return false
	}
	for name, r := range c.served {
		found.add(name, r)
	}
	slices.SortFunc(found.kinds, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	same := slices.Equal(found.kinds, c.looked) && (len(found.kinds) == 0 || slices.Equal(specs, c.checked))
	if !c.again.Swap(false) && !anyhow && same {
		return false
	}
	if c.schemas == nil {
		c.schemas = c.catalog.Schemas()
	}
	if err := found.fill(ctx, c.schemas); err != nil {
		// Schemas are a help, not a need: without them nothing is reported.
		c.log.V(1).Info("expressions are not checked against the cluster's schemas", "reason", err.Error())
		c.looked, c.checked = nil, nil
		return false
	}
	c.looked, c.checked = found.kinds, specs
	for _, spec := range specs {
		faults, _ := spec.CheckSchemas(dsl.Knowledge{OfResource: found.ofResource, OfKind: found.ofKind})
		c.found(spec, faults)
	}
	return true
}

// keep drops the findings of resources that the operator no longer handles.
func (c *Recheck) keep(specs []checkable) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.findings, func(spec checkable, _ []string) bool { return !slices.Contains(specs, spec) })
}

// found records the contradictions of a resource or index, and logs new ones.
func (c *Recheck) found(spec checkable, faults []error) {
	var texts []string
	for _, fault := range faults {
		texts = append(texts, fault.Error())
	}
	c.mu.Lock()
	before := c.findings[spec]
	c.findings[spec] = texts
	c.mu.Unlock()
	what, name := named(spec)
	log := c.log.WithValues(what, name)
	if len(texts) == 0 && len(before) > 0 {
		log.Info("expressions fit the cluster's schemas again")
	}
	for _, text := range texts {
		if !slices.Contains(before, text) {
			log.Info("an expression does not fit the cluster's schemas", logmark.Warning, true, "fault", text)
		}
	}
}

// Checks returns a warning for each resource and index with contradictions. Its name is "expressions/" with the
// resource, or "expressions/index/" with the index.
func (c *Recheck) Checks() (out []ops.Check) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for spec := range c.specs {
		what, name := named(spec)
		if what == "index" {
			name = "index/" + name
		}
		texts := c.findings[spec]
		if len(texts) == 0 {
			continue
		}
		message := texts[0]
		if more := len(texts) - 1; more > 0 {
			message = fmt.Sprintf("%s (and %d more)", message, more)
		}
		out = append(out, ops.Check{Name: "expressions/" + name, State: ops.Warn, Message: message})
	}
	return out
}
