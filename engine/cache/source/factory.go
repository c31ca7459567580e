// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/cluster/notfound"
)

// FactorySettings configure a factory. The log is optional.
type FactorySettings struct {
	// Cluster has the dependencies that the sources share. The factory fills in Scope and CRDs.
	Cluster Cluster
	// Form has the settings of all caches: the field managers, and their annotations.
	Form cached.Form
	// Log is the log of the sources of namespaces and CRDs.
	Log logr.Logger
	// Scope is the scope of the operator.
	Scope dsl.Scope
	// Owner runs the other sources of the operator.
	Owner Owner
}

// Owner runs the sources of an operator. Its methods must be quick.
type Owner interface {
	// Sources returns the sources that the owner runs.
	Sources() []*Source
	// ScopeChanged is called when the namespaces of the scope have changed.
	ScopeChanged()
	// OnCRDEvent is called with each event of a CRD.
	OnCRDEvent(watch.Event)
}

// Factory creates the sources. Its methods may be called at any time by any number of goroutines.
type Factory struct {
	settings FactorySettings
	scope    *Scope
	// namespaces is nil if the scope is not live.
	namespaces, crds *Source
	needCRDs         chan struct{}
	lent             atomic.Int32
}

// MaxBorrowed bounds the sources in one process that data ask for, and not the configuration.
const MaxBorrowed = 64

// Borrow counts a source that data ask for, such as lines of the register. It reports whether the source is allowed. If
// it is, Return must be called once, when the source has ended.
func (y *Factory) Borrow() bool {
	if y.lent.Add(1) > MaxBorrowed {
		y.lent.Add(-1)
		return false
	}
	return true
}

// Return must be called when a source that Borrow counted has ended.
func (y *Factory) Return() { y.lent.Add(-1) }

// NewFactory returns a factory. Its own sources do not run yet.
func NewFactory(s FactorySettings) *Factory {
	y := &Factory{settings: s, needCRDs: make(chan struct{}, 1)}
	namespaces := dsl.ResourceName{Resource: "namespaces", Version: "v1"}
	y.scope = NewScope(ScopeSettings{
		Of: s.Scope, Log: s.Log.WithValues("resource", namespaces.Resource), Namespaces: y,
	})
	if y.scope.Live() {
		y.namespaces = y.newOwn(dsl.CacheMetadata, Settings{
			Name: namespaces, Log: s.Log.WithValues("resource", namespaces.Resource), Handler: ofNamespaces{y}, Steps: ofNamespaces{y},
		})
	}
	crds := dsl.ResourceName{Resource: "customresourcedefinitions", Version: "v1", Group: "apiextensions.k8s.io"}
	y.crds = y.newOwn(dsl.CacheLive, Settings{Name: crds, Log: s.Log.V(1).WithValues("resource", crds.String()), Handler: ofCRDs{y}})
	return y
}

// newOwn returns a source of the factory itself: cluster-wide, and with no more than metadata.
func (y *Factory) newOwn(held dsl.CacheProfile, s Settings) *Source {
	s.Source.Profile = held
	return y.newIn(NewScope(ScopeSettings{}), s)
}

// New returns a source that is not running yet. It fills in the settings of all caches.
func (y *Factory) New(s Settings) *Source { return y.newIn(y.scope, s) }

func (y *Factory) newIn(scope *Scope, s Settings) *Source {
	all := y.settings.Form
	s.Source.Made, s.Source.Markers, s.Source.Own = all.Made, all.Markers, all.Own
	in := y.settings.Cluster
	in.Scope, in.CRDs = scope, y
	return New(in, s)
}

// Namespaces returns the watch.Source of the metadata of all namespaces. The scope uses the same one, so both share an
// informer.
func (y *Factory) Namespaces() watch.Source {
	form := y.settings.Form
	form.Kind, form.Profile = "Namespace", dsl.CacheMetadata
	return watch.Source{GVR: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Form: form.WithDefaults()}
}

// Run runs the factory's own sources until ctx ends. Without the right to watch CRDs, sources find a new CRD by looking
// again.
func (y *Factory) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	if y.namespaces != nil {
		running.Go(func() { y.namespaces.Run(ctx) })
	}
	select {
	case <-ctx.Done():
	case <-y.needCRDs:
		y.crds.Run(ctx)
	}
}

// WantCRDs starts the watch of CRDs, unless it runs: a CRD is missing, or may change.
func (y *Factory) WantCRDs() { signal(y.needCRDs) }

// Scope has the namespaces that the operator works in.
func (y *Factory) Scope() *Scope { return y.scope }

// Settled waits until the namespaces are listed or the listing has failed, or until ctx ends.
func (y *Factory) Settled(ctx context.Context) {
	if y.namespaces == nil {
		return
	}
	select {
	case <-y.namespaces.Settled():
	case <-ctx.Done():
	}
}

// All returns the sources that run from the start.
func (y *Factory) All() []*Source {
	if y.namespaces == nil {
		return y.settings.Owner.Sources()
	}
	return append(y.settings.Owner.Sources(), y.namespaces)
}

func (y *Factory) nudge() {
	for _, f := range y.All() {
		f.Nudge()
	}
}

// WatchChanged reports a change of the state of an informer to the sources of its resource.
func (y *Factory) WatchChanged(gvr schema.GroupVersionResource) {
	for _, f := range append(y.All(), y.crds) {
		f.WatchChanged(gvr)
	}
}

// ofCRDs handles the events of CRDs.
type ofCRDs struct{ *Factory }

// OnEvent implements [Handler].
func (y ofCRDs) OnEvent(ev watch.Event) {
	y.settings.Cluster.Catalog.Invalidate()
	y.settings.Owner.OnCRDEvent(ev)
	for _, f := range y.All() {
		f.CRDChanged(ev)
	}
}

// Grant does nothing: no request waits for CRDs.
func (ofCRDs) Grant() {}

// ofNamespaces handles the events of namespaces, and follows the steps of their source.
type ofNamespaces struct{ *Factory }

// OnEvent implements [Handler].
func (y ofNamespaces) OnEvent(ev watch.Event) {
	switch {
	case ev.Kind != watch.Deleted:
		y.scope.OnUpdated(ev.Key.Name, ev.Object.GetLabels())
	case ev.Unseen:
		y.scope.OnLost(ev.Key.Name)
		y.namespaces.Nudge()
	default:
		y.scope.OnDeleted(ev.Key.Name)
	}
}

// Grant does nothing: the scope changes with the events.
func (ofNamespaces) Grant() {}

// Listed implements [Steps].
func (y ofNamespaces) Listed(ctx context.Context, well bool) (again bool) {
	return y.scope.Listed(ctx, well)
}

// Absent does nothing: namespaces have no CRD.
func (ofNamespaces) Absent(context.Context) {}

// ScopeChanged implements [Namespaces].
func (y *Factory) ScopeChanged() {
	y.nudge()
	y.settings.Owner.ScopeChanged()
}

// NamespacesFault implements [Namespaces].
func (y *Factory) NamespacesFault() string {
	now := y.namespaces.Status()
	if now.Phase == Starting || now.Phase == Running {
		return ""
	}
	text := "namespaces are " + string(now.Phase) + ": " + now.Message
	if now.Phase == Forbidden {
		text += " (a scope with globs or a namespaceSelector needs the rights to list and watch namespaces; operator rbac prints them)"
	}
	return text
}

// NamespaceGone reads a namespace from the server, and reports whether it is gone.
func (y *Factory) NamespaceGone(ctx context.Context, name string) (bool, error) {
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	_, err := y.settings.Cluster.Metadata.Resource(namespaces).Get(ctx, name, metav1.GetOptions{})
	if notfound.IsGone(err, namespaces.GroupResource(), name) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return false, nil
}

// IsExtinct reports whether a kind that the API server does not serve is gone with its objects, because no CRD may define
// it. Doubt is the reason why that is not certain; it is nil while the CRDs are being listed.
func (y *Factory) IsExtinct(ctx context.Context, kind schema.GroupKind) (extinct bool, doubt error) {
	y.WantCRDs()
	if err := y.crds.Complete(); err != nil || y.crds.IsBehind() {
		if y.crds.Status().Phase == Starting {
			err = nil
		}
		return false, err
	}
	for _, crd := range y.crds.Objects("") {
		plural, group, _ := strings.Cut(crd.GetName(), ".")
		if group != kind.Group {
			continue
		}
		// The name does not show the kind. If the resource is served, the CRD defines another kind.
		if _, err := y.settings.Cluster.Catalog.Resolve(ctx, dsl.ResourceName{Resource: plural, Group: group}); err != nil {
			return false, fmt.Errorf("its CRD %s is there", crd.GetName())
		}
	}
	return true, nil
}

// Whole returns a source whose cache has all objects of the resource in the namespace, with all fields; or nil.
func (y *Factory) Whole(gvr schema.GroupVersionResource, namespace string) *Source {
	for _, f := range y.All() {
		if f.Whole(gvr, namespace) {
			return f
		}
	}
	return nil
}
