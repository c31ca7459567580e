// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/engine/catalog"
	"github.com/handwerk-dev/handwerk/engine/notfound"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// unfound reports whether a list or a watch of one of the informers was answered with 404.
func (f *Feed) unfound() bool {
	return slices.ContainsFunc(f.opened(), func(ns string) bool {
		h := f.newest(ns)
		return h.Source().GVR == f.Resource().GVR && apierrors.IsNotFound(h.State().Fault)
	})
}

// inquire finds the reason of a 404 to a list or a watch, and reports whether the resource is no longer served as before. The 404
// does not mean that objects are deleted: a server that lags behind returns it, and so does one that registers the API again or no
// longer serves the version. Until the CRD is known to be deleted, the cache keeps its objects.
func (f *Feed) inquire(ctx context.Context) (lost bool) {
	if time.Since(f.asked) < lookAgain {
		if f.next != nil {
			f.move(ctx, f.next.served)
		}
		return f.lost
	}
	f.cluster.Catalog.Invalidate()
	served, err := f.look(ctx, f.settings.Name, f.settings.Kind)
	now := f.Resource()
	f.asked, f.lost = time.Now(), true
	switch {
	case errors.Is(err, catalog.ErrMissing):
		f.unserved(ctx)
	case err != nil:
		f.fail(err)
	case served.GVR == now.GVR && served.Namespaced == now.Namespaced:
		f.abandon(now.GVR)
		f.lost = false // the informers try again
	case served.GVR.GroupResource() == now.GVR.GroupResource() && served.Namespaced == now.Namespaced:
		f.move(ctx, served)
	default: // a CRD never changes its scope: this is another one
		f.end()
		f.Nudge()
	}
	return f.lost
}

// unserved sets the state of a feed whose resource is not served in the declared version.
func (f *Feed) unserved(ctx context.Context) {
	f.cluster.CRDs.WantCRDs()
	other := f.elsewhere(ctx)
	absent, there := false, false
	if other == "" {
		absent, there = f.extinct(ctx)
	}
	if absent {
		f.end()
	}
	f.mu.Lock()
	f.absent = absent
	kept := len(f.informers) > 0
	f.mu.Unlock()
	text := ""
	switch {
	case other != "":
		text = "the API server serves it in version " + other + " and not in that one"
	case absent:
		text = "the API server does not serve it (is its CRD installed?)"
	case kept:
		text = "the API server does not serve it now; nothing says that it is gone for good, so no object counts as deleted"
	case there:
		text = "its CRD is there, and the API server does not serve it yet"
	default:
		text = "the API server does not serve it, and whether its CRD is installed cannot be told"
	}
	f.health.Set(State{Phase: Unserved, Text: text, NotFound: there}, f.failures())
	if absent && f.settings.Steps != nil {
		f.settings.Steps.Absent(ctx)
	}
}

// extinct reports whether the resource is gone with all its objects, because its CRD is gone, and whether the CRD is there. The API
// server removes a CRD only after its last object. A resource without a CRD, as of an aggregated API, never counts as gone.
func (f *Feed) extinct(ctx context.Context) (extinct, there bool) {
	if len(f.opened()) > 0 && !f.now().hasCRD && !f.bereft {
		return false, false
	}
	there, err := f.readCRD(ctx)
	return !there && err == nil, there
}

// readCRD reads the resource's CRD from the server, and reports whether it is there.
func (f *Feed) readCRD(ctx context.Context) (there bool, err error) {
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	name := f.crdName()
	if _, err = f.cluster.Metadata.Resource(crds).Get(ctx, name, metav1.GetOptions{}); notfound.Says(err, crds.GroupResource(), name) {
		return false, nil
	}
	return err == nil, err
}

// crdName is the name that the resource's CRD has, if it has one. For a kind that was never served it
// is a guess.
func (f *Feed) crdName() string {
	switch {
	case f.Known():
		return f.Resource().GVR.GroupResource().String()
	case f.ByKind():
		plural, _ := meta.UnsafeGuessKindToResource(f.settings.Kind)
		return plural.GroupResource().String()
	}
	return schema.GroupResource{Group: f.settings.Name.Group, Resource: f.settings.Name.Resource}.String()
}

// findCRD records whether the resource has a CRD, unless that is known.
func (f *Feed) findCRD(ctx context.Context) {
	if f.now().crdKnown {
		return
	}
	there, err := false, error(nil)
	if strings.Contains(f.Resource().GVR.Group, ".") { // as groups of CRDs do
		there, err = f.readCRD(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hasCRD, f.crdKnown = there, err == nil || apierrors.IsForbidden(err)
}

// CRDChanged handles an event of any CRD: other resources may be served now, so the feed takes a step. It never blocks.
func (f *Feed) CRDChanged(ev watch.Event) {
	if ev.Key.Name == f.crdName() {
		f.mu.Lock()
		switch {
		case ev.Kind != watch.Deleted:
			f.hasCRD, f.crdKnown = true, true
		case !ev.Unseen:
			f.crdDeleted = f.known
		}
		f.prompted = true
		f.mu.Unlock()
	}
	f.Nudge()
}

// end closes the informers of a resource that is gone, and delivers the deletion of its objects.
func (f *Feed) end() {
	f.mu.Lock()
	f.absent = true // before a tombstone asks for an object
	f.known, f.crdKnown, f.hasCRD = false, false, false
	f.mu.Unlock()
	f.abandon(schema.GroupVersionResource{})
	for _, ns := range f.opened() {
		f.close(ns).ledger.closeAsDeleted()
	}
	f.cluster.Catalog.Invalidate()
}
