// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package enginetest

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

	"github.com/handwerk-dev/handwerk/engine/enginetest/internal/apiserver"
)

// ErrRefused is what a process gets when it is cut off: an error of the network.
var ErrRefused = apiserver.ErrRefused

// ErrPage is for [Cluster.FailNext]: the text "404 page not found", which a server answers when it
// does not serve what it was asked for, and which says nothing of objects.
var ErrPage error = apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "", "404 page not found", 0, true)

// fault is a request that is to fail.
type fault struct {
	verb, subresource string
	resource          schema.GroupResource
	// one of these is set
	err   error
	lose  bool
	delay time.Duration
	// lasts: it is there for more than one request; failed counts them.
	lasts  bool
	failed int
}

// late reports whether the fault is one of the answer.
func (f *fault) late() bool { return f.lose || f.delay > 0 }

func (f *fault) hits(r apiserver.Request) bool {
	return f.verb == r.Verb && f.resource == r.Resource.GroupResource() && f.subresource == r.Subresource
}

// FailNext makes the operators' next requests with this verb for this resource fail with these
// errors, one each. A subresource is written behind a slash, as in "foos.v1.example.com/status".
// Errors of the API machinery (apierrors.NewConflict and the like) become the server's answer,
// [ErrPage] a page that is not found, all others are errors of the network.
func (c *Cluster) FailNext(verb, resource string, errs ...error) {
	c.t.Helper()
	for _, err := range errs {
		c.addFault(verb, resource, &fault{err: err})
	}
}

// FailWhile makes the operators' requests with this verb for this resource fail with this error
// until the function that it returns is called, which says how many these were. Errors are as with
// [Cluster.FailNext]; nil lets the requests pass.
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

// LoseNext makes the cluster do the operators' next request with this verb for this resource, but
// its answer gets lost.
func (c *Cluster) LoseNext(verb, resource string) {
	c.t.Helper()
	c.addFault(verb, resource, &fault{lose: true})
}

// DelayNext makes the cluster do the operators' next request with this verb for this resource at
// once, but its answer takes so long to come.
func (c *Cluster) DelayNext(verb, resource string, d time.Duration) {
	c.t.Helper()
	c.addFault(verb, resource, &fault{delay: d})
}

// Forbid takes a right away from the operators: the verb for the resource, in a namespace if one is
// given. A subresource is written behind a slash. Watches that are open stay so.
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

// Break makes an API group answer nothing but 503, as one does whose aggregated server is down.
func (c *Cluster) Break(group string) { c.server.Break(group) }

// Mend is the opposite of Break.
func (c *Cluster) Mend(group string) { c.server.Mend(group) }

// Withdraw makes the cluster answer 404 for everything of the resources and leave them out of what it
// says that it serves, as an API server that is behind does, or one whose aggregated API is registered
// anew. CRDs and objects stay. Restore is the opposite.
func (c *Cluster) Withdraw(resources ...string) {
	c.t.Helper()
	c.server.Withdraw(c.parseAll(resources)...)
}

// Restore is the opposite of Withdraw.
func (c *Cluster) Restore(resources ...string) {
	c.t.Helper()
	c.server.Restore(c.parseAll(resources)...)
}

// LagDiscovery makes the cluster go on saying that it serves what it serves now, as an API server does for a moment
// after a CRD has come or gone, until the function that it returns is called.
func (c *Cluster) LagDiscovery() (end func()) {
	c.server.LagDiscovery(true)
	return func() { c.server.LagDiscovery(false) }
}

// Omit makes lists not show an object that is there, as those of a server that is behind. Reveal is
// the opposite.
func (c *Cluster) Omit(resource, namespace, name string) {
	c.t.Helper()
	c.server.Omit(c.parse(resource).GroupResource(), namespace, name, true)
}

// Reveal is the opposite of Omit.
func (c *Cluster) Reveal(resource, namespace, name string) {
	c.t.Helper()
	c.server.Omit(c.parse(resource).GroupResource(), namespace, name, false)
}

// HoldWatches keeps watch events of the resources back, of all when none is named: caches grow
// stale. What is listed is not held, so a watch that begins anew shows it.
func (c *Cluster) HoldWatches(resources ...string) {
	c.t.Helper()
	c.server.Hold(c.parseAll(resources)...)
}

// ReleaseWatches lets go what HoldWatches kept back.
func (c *Cluster) ReleaseWatches(resources ...string) {
	c.t.Helper()
	c.server.Release(c.parseAll(resources)...)
}

// CutWatches ends the watches of the resources. Operators resume them, after a moment, where they
// ended.
func (c *Cluster) CutWatches(resources ...string) {
	c.t.Helper()
	c.server.Cut(c.parseAll(resources)...)
}

// ExpireWatches ends the watches of the resources, as a server does that has forgotten what
// happened: operators list anew, after a moment. Events that were held back are lost, so what
// happened between HoldWatches and ExpireWatches is a gap in the watch.
func (c *Cluster) ExpireWatches(resources ...string) {
	c.t.Helper()
	c.server.Expire(c.parseAll(resources)...)
}

// Rewrite makes the cluster change what is written to a resource by anybody before it is stored, as a
// webhook, a default or a schema that prunes does, until the function that it returns is called. Change
// must not call the cluster.
func (c *Cluster) Rewrite(resource string, change func(*unstructured.Unstructured)) (end func()) {
	c.t.Helper()
	return c.server.Rewrite(c.parse(resource).GroupResource(), change)
}

// Refuse makes the cluster refuse what is written to a resource by anybody where review returns an error,
// as schemas and webhooks do, until the function that it returns is called. Review sees the whole object
// as it would be stored. Errors of the API machinery (apierrors.NewInvalid and the like) become the
// server's answer, any other one a 403. Review must not call the cluster.
func (c *Cluster) Refuse(resource string, review func(*unstructured.Unstructured) error) (end func()) {
	c.t.Helper()
	return c.server.Refuse(c.parse(resource).GroupResource(), review)
}

// Snapshot remembers the cluster as it is. What it returns puts it back, as when etcd is restored from
// a backup: versions begin anew from there, and operators list anew, after a moment.
func (c *Cluster) Snapshot() (restore func()) { return c.server.Snapshot() }

// Backup is [Cluster.Snapshot] with a restore that leaves all watches open, so the caches of operators are ahead of the
// cluster. After CutWatches they are resumed at versions that the cluster has yet to reach, and are silent until then.
func (c *Cluster) Backup() (restore func()) { return c.server.Backup() }

func (c *Cluster) addFault(verb, resource string, f *fault) {
	c.t.Helper()
	f.verb = verb
	f.resource, f.subresource = c.split(resource)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, f)
}

func (c *Cluster) rules(verb, resource string, namespaces []string) []apiserver.Rule {
	c.t.Helper()
	rule := apiserver.Rule{Verb: verb}
	rule.Resource, rule.Subresource = c.split(resource)
	if len(namespaces) == 0 {
		return []apiserver.Rule{rule}
	}
	var out []apiserver.Rule
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

// before sees a request of an operator. An error keeps it from the server.
func (c *Cluster) before(r apiserver.Request) error {
	if f := c.strike(r, false); f != nil {
		return f.err
	}
	return nil
}

// after sees that a request was answered. An error loses the answer.
func (c *Cluster) after(ctx context.Context, r apiserver.Request) error {
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

// strike takes the fault that the request runs into, nil when there is none.
func (c *Cluster) strike(r apiserver.Request, late bool) *fault {
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
