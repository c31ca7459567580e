// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/catalog"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/ops"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

const (
	// settling is how long the checks wait for more to come, once something has: CRDs come in groups.
	settling = 2 * time.Second
	// mostLooks is how often they look then: after 2, 8 and 32 seconds.
	mostLooks = 3
)

// checks hold the operator's expressions against the schemas of the cluster while it runs: when a
// resource begins to be served, and when a CRD changes. What does not fit is shown and does not stop
// anybody: an expression that cannot be evaluated fails by itself.
//
// There is nothing to do and nothing is asked for resources without expressions.
type checks struct {
	log       logr.Logger
	discovery discovery.DiscoveryInterfaceWithContext
	// specs are the resources that have checks.
	specs []*dsl.Resource
	// feeds are those of these resources, and so all that expressions speak of.
	feeds func() []*feed.Feed
	wake  chan struct{}

	// schemas are kept from one look to the next, as long as there are more to come; nil otherwise,
	// because they are large. Only run's goroutine uses them.
	schemas *catalog.Schemas

	// looked is what was served when the checks ran last; only run's goroutine uses it.
	looked []schema.GroupVersionKind

	mu sync.Mutex
	// again: a CRD has changed, so that the same kinds may have other schemas.
	again    bool
	findings map[string][]string
}

// newChecks prepares the checks of an engine.
func newChecks(e *Engine) *checks {
	c := &checks{
		log: e.log, discovery: e.clients.discovery, feeds: e.checkedFeeds,
		wake: make(chan struct{}, 1), findings: map[string][]string{},
	}
	for _, spec := range e.op.Resources() {
		if spec.Checked() {
			c.specs = append(c.specs, spec)
		}
	}
	return c
}

// crdSeen has the checks run soon, as a CRD has changed. It never blocks.
func (c *checks) crdSeen() {
	c.mu.Lock()
	c.again = true
	c.mu.Unlock()
	c.nudge()
}

// checkedFeeds are the feeds of the resources that have checks.
func (e *Engine) checkedFeeds() (out []*feed.Feed) {
	for _, r := range e.resources {
		if r.spec.Checked() {
			out = append(out, r.feeds()...)
		}
	}
	return out
}

// nudge has the checks run soon, if there are any. It never blocks.
func (c *checks) nudge() {
	if len(c.specs) == 0 {
		return
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// watchState is called when an informer's state has changed: perhaps what it watches has come.
func (e *Engine) watchState(src watch.Source, state watch.State) {
	e.watchChanged(src, state)
	e.checks.nudge()
}

// run checks whenever there was reason to, until ctx ends. Schemas are published a moment after a
// CRD has changed, nobody says when: so it looks a few times, ever later.
func (c *checks) run(ctx context.Context) {
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
				c.rest()
			}
		}
	}
}

// look checks every resource, unless all is as it was and it is not told to. It reports whether it
// could.
func (c *checks) look(ctx context.Context, anyhow bool) bool {
	served := newServedSchemas()
	for _, f := range c.feeds() {
		if f.Known() {
			served.add(f.Resource(), f.Name())
		}
	}
	slices.SortFunc(served.kinds, func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) })
	if !c.news() && !anyhow && slices.Equal(served.kinds, c.looked) {
		return false
	}
	if c.schemas == nil {
		c.schemas = catalog.NewSchemas(c.discovery)
	}
	if err := served.fill(ctx, c.schemas); err != nil {
		// Schemas are a help, not a need: what cannot be read is not held against anything.
		c.log.V(1).Info("expressions are not checked against the cluster's schemas", "reason", err.Error())
		c.looked = nil
		return false
	}
	c.looked = served.kinds
	for _, spec := range c.specs {
		c.found(spec.Name.String(), spec.CheckSchemas(served))
	}
	return true
}

// rest gives back what the schemas took: the next CRD may be long in coming.
func (c *checks) rest() {
	if c.schemas == nil {
		return
	}
	c.schemas = nil
	debug.FreeOSMemory()
}

// news reports whether a CRD has changed since it was called last.
func (c *checks) news() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	again := c.again
	c.again = false
	return again
}

// found notes what does not fit of a resource, and logs it when it is news.
func (c *checks) found(resource string, faults []error) {
	var texts []string
	for _, fault := range faults {
		texts = append(texts, fault.Error())
	}
	c.mu.Lock()
	before := c.findings[resource]
	c.findings[resource] = texts
	c.mu.Unlock()
	log := c.log.WithValues("resource", resource)
	if len(texts) == 0 && len(before) > 0 {
		log.Info("expressions fit the cluster's schemas again")
	}
	for _, text := range texts {
		if !slices.Contains(before, text) {
			log.Info("an expression does not fit the cluster's schemas", dsl.LogWarning, true, "fault", text)
		}
	}
}

// ready are the findings, a check for each resource that has some.
func (c *checks) ready() (out []ops.Check) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, spec := range c.specs {
		name := spec.Name.String()
		texts := c.findings[name]
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
