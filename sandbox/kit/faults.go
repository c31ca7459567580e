// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/sandbox/server"
)

// ErrRefused is the network error that a disconnected process gets.
var ErrRefused = server.ErrRefused

// ErrPage is for [Cluster.FailNext]: the text "404 page not found", which a server answers for a path that it does
// not serve, and which is not about objects.
var ErrPage error = apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "", "404 page not found", 0, true)

// fault is a request that will fail.
type fault struct {
	verb, subresource string
	resource          schema.GroupResource
	// one of these is set
	err   error
	lose  bool
	delay time.Duration
	// lasts: it applies to more than one request; failed counts them.
	lasts  bool
	failed int
}

// late reports whether the fault affects the response.
func (f *fault) late() bool { return f.lose || f.delay > 0 }

func (f *fault) hits(r server.Request) bool {
	return f.verb == r.Verb && f.resource == r.Resource.GroupResource() && f.subresource == r.Subresource
}

// FailNext makes the operators' next requests with this verb for this resource fail with these errors, one each. A
// subresource follows a slash, as in "foos.v1.example.com/status". Errors of the API machinery
// (apierrors.NewConflict and the like) become the server's response, and [ErrPage] a page that is not found; all
// others are network errors.
func (c *Cluster) FailNext(verb, resource string, errs ...error) {
	c.t.Helper()
	for _, err := range errs {
		c.addFault(verb, resource, &fault{err: err})
	}
}

// FailWhile makes the operators' requests with this verb for this resource fail with this error until the returned
// function is called, which returns their number. Errors are as in [Cluster.FailNext]; nil lets the requests pass.
func (c *Cluster) FailWhile(verb, resource string, err error) (end func() (failed int)) {
	c.t.Helper()
	f := &fault{err: err, lasts: true}
	c.addFault(verb, resource, f)
	return func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.faults = slices.DeleteFunc(c.faults, func(each *fault) bool { return each == f })
		return f.failed
	}
}

// LoseNext loses the response to the operators' next request with this verb for this resource; the cluster handles
// the request.
func (c *Cluster) LoseNext(verb, resource string) {
	c.t.Helper()
	c.addFault(verb, resource, &fault{lose: true})
}

// Unmet returns how many of the faults of [Cluster.FailNext] and its like for this verb and resource no request has met.
func (c *Cluster) Unmet(verb, resource string) (n int) {
	c.t.Helper()
	kind, subresource := c.split(resource)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.faults {
		if !f.lasts && f.verb == verb && f.resource == kind && f.subresource == subresource {
			n++
		}
	}
	return n
}

// DelayNext delays the response to the operators' next request with this verb for this resource; the cluster
// handles the request at once.
func (c *Cluster) DelayNext(verb, resource string, d time.Duration) {
	c.t.Helper()
	c.addFault(verb, resource, &fault{delay: d})
}

// Forbid takes a right from the operators: the verb on the resource, in a namespace if one is given. A subresource
// follows a slash. Open watches continue.
func (c *Cluster) Forbid(verb, resource string, namespace ...string) {
	c.t.Helper()
	for _, r := range c.rules(verb, resource, namespace) {
		c.server.Forbid(r)
	}
}

// Allow is the opposite of Forbid with the same arguments.
func (c *Cluster) Allow(verb, resource string, namespace ...string) {
	c.t.Helper()
	for _, r := range c.rules(verb, resource, namespace) {
		c.server.Allow(r)
	}
}

// Break makes an API group answer only 503, like one whose aggregated server is down.
func (c *Cluster) Break(group string) { c.server.Break(group) }

// Mend is the opposite of Break.
func (c *Cluster) Mend(group string) { c.server.Mend(group) }

// Withdraw makes the cluster answer 404 for the resources and leave them out of discovery, like an API server that
// is behind, or while an aggregated API is registered again. CRDs and objects stay. Restore is the opposite.
func (c *Cluster) Withdraw(resources ...string) {
	c.t.Helper()
	c.server.Withdraw(c.parseAll(resources)...)
}

// Restore is the opposite of Withdraw.
func (c *Cluster) Restore(resources ...string) {
	c.t.Helper()
	c.server.Restore(c.parseAll(resources)...)
}

// LagDiscovery freezes discovery at its current state until the returned function is called, like an API server
// just after a CRD was created or deleted.
func (c *Cluster) LagDiscovery() (end func()) {
	c.server.LagDiscovery(true)
	return func() { c.server.LagDiscovery(false) }
}

// Omit hides an existing object from lists, like a server that is behind. Reveal is the opposite.
func (c *Cluster) Omit(resource, namespace, name string) {
	c.t.Helper()
	c.server.Omit(c.parse(resource).GroupResource(), namespace, name, true)
}

// Reveal is the opposite of Omit.
func (c *Cluster) Reveal(resource, namespace, name string) {
	c.t.Helper()
	c.server.Omit(c.parse(resource).GroupResource(), namespace, name, false)
}

// HoldWatches holds back watch events of the resources, or of all if none is named, so that caches become stale.
// Lists are not affected, so a watch that starts again has the current state.
func (c *Cluster) HoldWatches(resources ...string) {
	c.t.Helper()
	c.server.Hold(c.parseAll(resources)...)
}

// ReleaseWatches sends the events that HoldWatches held back.
func (c *Cluster) ReleaseWatches(resources ...string) {
	c.t.Helper()
	c.server.Release(c.parseAll(resources)...)
}

// CutWatches ends the watches of the resources. Operators resume them a moment later, without a gap.
func (c *Cluster) CutWatches(resources ...string) {
	c.t.Helper()
	c.server.Cut(c.parseAll(resources)...)
}

// ExpireWatches ends the watches of the resources, like a server that has dropped its history: operators list again
// a moment later. Held events are lost, so the time between HoldWatches and ExpireWatches is a gap in the watch.
func (c *Cluster) ExpireWatches(resources ...string) {
	c.t.Helper()
	c.server.Expire(c.parseAll(resources)...)
}

// Rewrite makes the cluster change all objects that are written to a resource before it stores them, like a
// webhook, a default or a schema that prunes, until the returned function is called. Change must not call the
// cluster.
func (c *Cluster) Rewrite(resource string, change func(*unstructured.Unstructured)) (end func()) {
	c.t.Helper()
	return c.server.Rewrite(c.parse(resource).GroupResource(), change)
}

// Refuse makes the cluster refuse all writes to a resource for which review returns an error, like schemas and
// webhooks, until the returned function is called. Review gets the whole object that would be stored. Errors of the
// API machinery (apierrors.NewInvalid and the like) become the server's response; any other error becomes a 403.
// Review must not call the cluster.
func (c *Cluster) Refuse(resource string, review func(*unstructured.Unstructured) error) (end func()) {
	c.t.Helper()
	return c.server.Refuse(c.parse(resource).GroupResource(), review)
}

// Convert makes the cluster call a function in place of the webhook that a CRD names for its conversions. The function must not call
// the cluster.
func (c *Cluster) Convert(crd string, by server.Conversion) {
	c.t.Helper()
	c.server.Convert(crd, by)
}

// Snapshot records the state of the cluster. The returned function restores it, like a backup of etcd: versions
// continue from there, and operators list again a moment later.
func (c *Cluster) Snapshot() (restore func()) { return c.server.Snapshot() }

// Backup is [Cluster.Snapshot], but restoring leaves all watches open, so the caches of operators are ahead of the
// cluster. After CutWatches they are resumed at versions that the cluster has yet to reach, and are silent until
// then.
func (c *Cluster) Backup() (restore func()) { return c.server.Backup() }

func (c *Cluster) addFault(verb, resource string, f *fault) {
	c.t.Helper()
	f.verb = verb
	f.resource, f.subresource = c.split(resource)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, f)
}

func (c *Cluster) rules(verb, resource string, namespaces []string) []server.Rule {
	c.t.Helper()
	rule := server.Rule{Verb: verb}
	rule.Resource, rule.Subresource = c.split(resource)
	if len(namespaces) == 0 {
		return []server.Rule{rule}
	}
	var out []server.Rule
	for _, rule.Namespace = range namespaces {
		out = append(out, rule)
	}
	return out
}

func (c *Cluster) split(text string) (resource schema.GroupResource, subresource string) {
	c.t.Helper()
	name, subresource, _ := strings.Cut(text, "/")
	return c.parse(name).GroupResource(), subresource
}

// before is called for each request of an operator. An error keeps it from the server.
func (c *Cluster) before(r server.Request) error {
	if f := c.strike(r, false); f != nil {
		return f.err
	}
	return nil
}

// after is called for each response to an operator. An error loses the response.
func (c *Cluster) after(ctx context.Context, r server.Request) error {
	f := c.strike(r, true)
	switch {
	case f == nil:
		return nil
	case f.lose:
		return errors.New("connection reset by peer")
	}
	select {
	case <-time.After(f.delay):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// strike takes the fault for a request, or nil.
func (c *Cluster) strike(r server.Request, late bool) *fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.faults, func(f *fault) bool { return f.late() == late && f.hits(r) })
	if i < 0 {
		return nil
	}
	f := c.faults[i]
	f.failed++
	if !f.lasts {
		c.faults = slices.Delete(c.faults, i, i+1)
	}
	return f
}
