// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
)

// runner takes the steps of a source, from discovery to running informers. Only the goroutine of [Source.Run] uses it.
type runner struct {
	*Reader
	settings Settings
	cluster  Cluster
	locator  *locator
	crd      *definition
	access   *access
	wake     chan struct{}

	// asked is when the source last looked for the reason of a 404, and lost is the result.
	asked time.Time
	lost  bool
}

// run implements [Source.Run].
func (r *runner) run(ctx context.Context) {
	defer r.access.foresee(ctx, r.scope)()
	p := patience{}
	for {
		again := r.step(ctx)
		select {
		case <-ctx.Done():
			r.informers.abandon(schema.GroupVersionResource{})
			for _, ns := range r.informers.opened() {
				r.informers.close(ns)
			}
			return
		case <-r.wake:
		case <-p.wait(again, r.Status().Phase == Running, r.crd.takeChanged()):
		}
	}
}

// step brings the source one step nearer to running. It reports whether to take another step without an event.
func (r *runner) step(ctx context.Context) (again bool) {
	if r.crd.takeDeleted() {
		r.end()
		r.crd.bereft = true
	}
	r.starts("asking what the API server serves")
	if !r.resolve(ctx) {
		return true
	}
	defer r.findCRD(ctx)()
	if !r.informers.unfound() {
		r.informers.abandon(r.at.Resource().GVR)
	} else if r.inquire(ctx) {
		return true
	}
	r.catchUp(ctx)
	namespaces, known := r.namespaces()
	if !known {
		r.awaitNamespaces()
		return true // the reason may change without an event
	}
	r.starts("asking for the rights of the account")
	missing, err := r.access.check(ctx, namespaces)
	if err == nil {
		err = r.informers.open(ctx, namespaces, missing)
	}
	if err != nil {
		r.fail(err)
		return true
	}
	again = r.judge(ctx, missing)
	r.crd.bereft = r.crd.bereft && r.Status().Phase != Running
	return again
}

// starts reports the next action of a source that watches nothing yet.
func (r *runner) starts(doing string) {
	if r.Status().Phase == Starting && len(r.informers.opened()) == 0 {
		r.set(State{Phase: Starting, Text: doing})
	}
}

// findCRD finds out whether the resource has a CRD. While nothing is watched, nothing depends on the result, so the rest
// of the step runs until done is called.
func (r *runner) findCRD(ctx context.Context) (done func()) {
	if len(r.informers.opened()) > 0 {
		r.crd.find(ctx)
		return func() {}
	}
	var finding sync.WaitGroup
	finding.Go(func() { r.crd.find(ctx) })
	return finding.Wait
}

// awaitNamespaces sets the state of a source without a list of namespaces.
func (r *runner) awaitNamespaces() {
	if fault := r.scope.Fault(); fault != "" {
		r.set(State{Phase: Faulty, Text: fault})
		return
	}
	r.set(State{Phase: Starting, Text: "waiting for the list of namespaces"})
}

// resolve finds where the resource is served, and reports whether it is.
func (r *runner) resolve(ctx context.Context) bool {
	if r.at.Known() {
		return true
	}
	err := r.locator.find(ctx)
	switch {
	case errors.Is(err, discovery.ErrMissing):
		r.unserved(ctx)
	case err != nil:
		r.fail(err)
	}
	return err == nil
}

// inquire finds the reason of a 404 to a list or a watch, and reports whether the resource is no longer served as
// before. A 404 does not mean that objects are deleted. A server that lags behind returns it, and so does a server that
// registers the API again, or has dropped the version. Until the CRD is known to be deleted, the cache keeps its
// objects.
func (r *runner) inquire(ctx context.Context) (lost bool) {
	if time.Since(r.asked) < lookAgain {
		if next := r.informers.next; next != nil {
			r.move(ctx, next.served)
		}
		return r.lost
	}
	r.cluster.Catalog.Invalidate()
	served, err := r.locator.look(ctx)
	now := r.at.Resource()
	r.asked, r.lost = time.Now(), true
	switch {
	case errors.Is(err, discovery.ErrMissing):
		r.unserved(ctx)
	case err != nil:
		r.fail(err)
	case served.GVR == now.GVR && served.Namespaced == now.Namespaced:
		r.informers.abandon(now.GVR)
		r.lost = false // the informers try again
	case served.GVR.GroupResource() == now.GVR.GroupResource() && served.Namespaced == now.Namespaced:
		r.move(ctx, served)
	default: // a CRD never changes its scope: this is another one
		r.end()
		signal(r.wake)
	}
	return r.lost
}

// unserved sets the state of a source whose resource is not served in the declared version.
func (r *runner) unserved(ctx context.Context) {
	r.cluster.CRDs.WantCRDs()
	other := r.locator.elsewhere(ctx)
	absent, there := false, false
	if other == "" {
		absent, there = r.crd.extinct(ctx, len(r.informers.opened()) > 0)
	}
	if absent {
		r.end()
	}
	r.at.unserved(absent)
	text := ""
	switch {
	case other != "":
		text = "the API server serves it in version " + other + " and not in that one"
	case absent:
		text = "the API server does not serve it (is its CRD installed?)"
	case len(r.informers.opened()) > 0:
		text = "the API server does not serve it now; nothing says that it is gone for good, so no object counts as deleted"
	case there:
		text = "its CRD is there, and the API server does not serve it yet"
	default:
		text = "the API server does not serve it, and it is unknown whether its CRD is installed"
	}
	r.set(State{Phase: Unserved, Text: text, NotFound: there})
	if absent && r.settings.Steps != nil {
		r.settings.Steps.Absent(ctx)
	}
}

// end closes the informers of a resource that is gone, and delivers the deletion of its objects.
func (r *runner) end() {
	r.at.end() // before a tombstone asks for an object
	r.crd.forget()
	r.informers.abandon(schema.GroupVersionResource{})
	for _, ns := range r.informers.opened() {
		r.informers.close(ns).ledger.closeAsDeleted()
	}
	r.cluster.Catalog.Invalidate()
}

// move switches to the version in which the resource is served now. Its objects are the same: the informers of the old
// version stay until the new ones have listed. A namespace that cannot be listed, for a missing right for example, does
// not hold up the others.
func (r *runner) move(ctx context.Context, served discovery.Resource) {
	next := r.informers.succession(served)
	var ready []string
	fault, listing := error(nil), false
	for _, ns := range r.informers.trailing(served) {
		h, err := r.informers.join(ctx, next, ns)
		switch {
		case err != nil:
			r.fail(err)
			return
		case h.State().Synced && h.WaitSynced(ctx): // the last callback is about to return
			ready = append(ready, ns)
		case h.State().Fault != nil:
			fault = h.State().Fault
		default:
			listing = true
		}
	}
	now := r.at.Resource().GVR
	switch {
	case now == served.GVR:
		r.informers.swap(next, ready) // the others have states of their own
	case listing:
		r.set(State{Phase: Unserved, Text: fmt.Sprintf("version %s is no longer served; version %s is being listed", now.Version, served.GVR.Version)})
	case len(ready) == 0 && fault != nil:
		r.fail(fault)
	default:
		r.enter(next, ready)
	}
}

// enter makes the successor's version the version of the source.
func (r *runner) enter(next *successor, ready []string) {
	r.at.found(next.served)
	r.informers.swap(next, ready)
	r.settings.Log.Info("resource is watched in another version", "version", next.served.GVR.Version)
	signal(r.wake)
}

// catchUp continues the switch in the namespaces that still have another version.
func (r *runner) catchUp(ctx context.Context) {
	if now := r.at.Resource(); len(r.informers.trailing(now)) > 0 {
		r.move(ctx, now)
	}
}
