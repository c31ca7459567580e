// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/notfound"
)

// definition knows whether a resource has a CRD, and whether the CRD was deleted. Only the source's goroutine uses it,
// apart from seen.
type definition struct {
	of       *Location
	metadata metadata.Interface
	// bereft is true if the CRD was deleted and the resource has not been listed since. The server may serve it for a
	// while.
	bereft bool

	mu sync.Mutex
	// there is true if the resource has a CRD. Known is true if that is known, or cannot be found out.
	there, known bool
	// deleted is true from a deletion of the CRD until the next step. Changed is true after an event that the source may
	// wait for.
	deleted, changed bool
}

// name returns the name of the resource's CRD, if it has one. For a kind that was never served it is a guess.
func (d *definition) name() string {
	switch now := d.of.now(); {
	case now.known:
		return now.served.GVR.GroupResource().String()
	case d.of.ByKind():
		plural, _ := meta.UnsafeGuessKindToResource(d.of.kind)
		return plural.GroupResource().String()
	}
	return schema.GroupResource{Group: d.of.name.Group, Resource: d.of.name.Resource}.String()
}

// seen handles an event of any CRD.
func (d *definition) seen(ev watch.Event) {
	if ev.Key.Name != d.name() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case ev.Kind != watch.Deleted:
		d.there, d.known = true, true
	case !ev.Unseen:
		d.deleted = d.of.Known() // under the lock, because the end of the resource waits for it
	}
	d.changed = true
}

// takeDeleted reports whether the CRD was deleted since the last call.
func (d *definition) takeDeleted() bool { return d.take(&d.deleted) }

// takeChanged reports whether there was an event of the CRD since the last call.
func (d *definition) takeChanged() bool { return d.take(&d.changed) }

func (d *definition) take(flag *bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := *flag
	*flag = false
	return was
}

// forget drops the facts of the CRD of a resource that is gone.
func (d *definition) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.there, d.known = false, false
}

func (d *definition) now() (there, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.there, d.known
}

// find records whether the resource has a CRD, unless that is known.
func (d *definition) find(ctx context.Context) {
	if _, known := d.now(); known {
		return
	}
	there, err := false, error(nil)
	if strings.Contains(d.of.Resource().GVR.Group, ".") { // as groups of CRDs do
		there, err = d.read(ctx)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.there, d.known = there, err == nil || apierrors.IsForbidden(err)
}

// extinct reports whether the resource is gone with all its objects, because its CRD is gone, and whether the CRD
// exists. The API server removes a CRD only after its last object. A resource without a CRD, such as one of an
// aggregated API, never counts as gone while it is watched.
func (d *definition) extinct(ctx context.Context, watched bool) (extinct, there bool) {
	if had, _ := d.now(); watched && !had && !d.bereft {
		return false, false
	}
	there, err := d.read(ctx)
	return !there && err == nil, there
}

// read reads the resource's CRD from the server, and reports whether it is there.
func (d *definition) read(ctx context.Context) (there bool, err error) {
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	name := d.name()
	if _, err = d.metadata.Resource(crds).Get(ctx, name, metav1.GetOptions{}); notfound.IsGone(err, crds.GroupResource(), name) {
		return false, nil
	}
	return err == nil, err
}
