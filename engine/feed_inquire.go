// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/engine/catalog"
	"github.com/handwerk-dev/handwerk/engine/gone"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// lost reports whether a list or a watch of one of the informers was answered with 404.
func (f *feed) lost() bool {
	return slices.ContainsFunc(f.opened(), func(ns string) bool {
		h := f.newest(ns)
		return h.Source().GVR == f.resource().GVR && apierrors.IsNotFound(h.State().Fault)
	})
}

// inquire finds out what a 404 to a list or a watch means, and reports whether the resource is not
// served as it was. It says nothing of objects: a server that is behind, an API that is registered
// anew and a version that is served no more answer so. Until something says that the CRD is gone, the
// cache stays as it is and nothing counts as deleted.
func (f *feed) inquire(ctx context.Context) bool {
	if time.Since(f.inquired) < lookAgain {
		if f.next != nil {
			f.move(ctx, f.next.served)
		}
		return f.elapsed
	}
	f.catalog.Invalidate()
	served, err := f.look(ctx)
	now := f.resource()
	f.inquired, f.elapsed = time.Now(), true
	switch {
	case errors.Is(err, catalog.ErrMissing):
		f.unserved(ctx)
	case err != nil:
		f.fail(err)
	case served.GVR == now.GVR && served.Namespaced == now.Namespaced:
		f.abandon()
		f.elapsed = false // the informers try again
	case served.GVR.GroupResource() == now.GVR.GroupResource() && served.Namespaced == now.Namespaced:
		f.move(ctx, served)
	default: // a CRD never changes its scope: this is another one
		f.end()
		f.nudge()
	}
	return f.elapsed
}

// unserved says how it is with a resource that is not served in the version that was declared.
func (f *feed) unserved(ctx context.Context) {
	f.missing()
	other := f.elsewhere(ctx)
	absent := other == "" && f.extinct(ctx)
	if absent {
		f.end()
	}
	f.mu.Lock()
	f.absent = absent
	kept := len(f.handles) > 0
	f.mu.Unlock()
	switch {
	case other != "":
		f.become(hindrance{phase: phaseMissing, text: "the API server serves it in version " + other + " and not in that one"})
	case absent:
		f.become(hindrance{phase: phaseMissing, text: "the API server does not serve it (is its CRD installed?)"})
	case kept:
		f.become(hindrance{phase: phaseMissing, text: "the API server does not serve it now; nothing says that it is gone for good, so no object counts as deleted"})
	default:
		f.become(hindrance{phase: phaseMissing, text: "the API server does not serve it, and whether its CRD is installed cannot be told"})
	}
}

// extinct reports whether the resource is gone, with all its objects: its CRD is. The API server
// removes a CRD only when its last object is gone. A resource that never had a CRD, as one of an
// aggregated API, is never known to be gone.
func (f *feed) extinct(ctx context.Context) bool {
	f.mu.Lock()
	held, backed := len(f.handles) > 0, f.backed
	f.mu.Unlock()
	if held && !backed {
		return false
	}
	return f.crdGone(ctx) == nil
}

// errCRD is the error of crdGone for a CRD that is there.
var errCRD = errors.New("its CRD is there")

// crdGone asks for the CRD and returns nil when the answer says that there is none, or else why that
// cannot be said.
func (f *feed) crdGone(ctx context.Context) error {
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	name := f.crdName()
	_, err := f.metadata.Resource(crds).Get(ctx, name, metav1.GetOptions{})
	switch {
	case gone.Says(err, crds.GroupResource(), name):
		return nil
	case err != nil:
		return fmt.Errorf("reading CRD %s: %w", name, err)
	}
	return errCRD
}

// crdName is the name that the resource's CRD has, if it has one. For a kind that was never served it
// is a guess.
func (f *feed) crdName() string {
	switch {
	case f.isKnown():
		return f.resource().GVR.GroupResource().String()
	case !f.kind.Empty():
		plural, _ := meta.UnsafeGuessKindToResource(f.kind)
		return plural.GroupResource().String()
	}
	return schema.GroupResource{Group: f.name.Group, Resource: f.name.Resource}.String()
}

// certify notes, once it can be told, whether the resource has a CRD.
func (f *feed) certify(ctx context.Context) {
	f.mu.Lock()
	done := f.certified
	f.mu.Unlock()
	if done {
		return
	}
	err := error(nil)
	if group := f.resource().GVR.Group; isCustom(group) {
		err = f.crdGone(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.backed = errors.Is(err, errCRD)
	f.certified = f.backed || err == nil || apierrors.IsForbidden(err)
}

// heard takes an event of the resource's CRD.
func (f *feed) heard(ev watch.Event) {
	f.mu.Lock()
	switch {
	case ev.Kind != watch.Deleted:
		f.backed, f.certified = true, true
	case !ev.Unseen:
		f.doomed = f.known
	}
	f.hasten = true
	f.mu.Unlock()
	f.nudge()
}

// doom reports once that the resource's CRD was seen to go.
func (f *feed) doom() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.doomed
	f.doomed = false
	return was
}

// end closes the informers of a resource that is gone, and tells of its objects' deletion.
func (f *feed) end() {
	f.mu.Lock()
	f.absent = true // before anybody asks what became of an object
	f.known, f.certified, f.backed = false, false, false
	f.mu.Unlock()
	f.dropNext()
	for _, ns := range f.opened() {
		f.close(ns).bury()
	}
	f.catalog.Invalidate()
}

// concerns reports whether a CRD of that name is, or may be, the resource's.
func (f *feed) concerns(crd string) bool { return crd == f.crdName() }

// watching reports whether the feed watches the resource, or is about to.
func (f *feed) watching(gvr schema.GroupVersionResource) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known && (f.served.GVR == gvr || f.next != nil && f.next.served.GVR == gvr)
}

// isAbsent reports whether the resource is known to be gone, or not to have come yet.
func (f *feed) isAbsent() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.absent
}

// isCustom reports whether the API group may be one of CRDs, whose groups have a dot.
func isCustom(group string) bool { return strings.Contains(group, ".") }
