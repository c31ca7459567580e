// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package discovery knows which resources the API server serves, and asks it for the rights of the operator's
// account.
package discovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/kube"
)

// ErrMissing is wrapped by the errors of [Catalog.Resolve] and [Catalog.KindOf] when the API
// server does not serve the group, the version or the resource: it may come with a CRD. All other
// errors mean that the server could not be asked, or not about that group, or that the resource
// is of no use.
var ErrMissing = errors.New("not served by the API server")

// freshness is the greatest age of a snapshot for saying that something is missing.
const freshness = time.Second

// Resource is a resource as the API server serves it.
type Resource struct {
	GVR schema.GroupVersionResource
	// Kind is the kind of its objects, as in "Deployment".
	Kind string
	// Namespaced: its objects are namespaced.
	Namespaced bool
	// Status: it has a status subresource. Scale: it has a scale subresource.
	Status, Scale bool
	// Singular is the name of one; empty where the kind in small letters is.
	Singular string
	// Short are kubectl's short names. They are shared: do not change them.
	Short []string
	// Verbs are the supported verbs, as in "list". They are shared: do not change them.
	Verbs []string
}

// GroupKind returns the kind of its objects, with the group.
func (r Resource) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: r.GVR.Group, Kind: r.Kind}
}

// Generation returns the generation for conditions on an object; zero if the resource has no status subresource,
// because then each write of the status changes the generation.
func (r Resource) Generation(o metav1.Object) int64 {
	if !r.Status {
		return 0
	}
	return o.GetGeneration()
}

// Catalog answers from a snapshot of the resources that the server serves. It asks the server again if something is
// not in the snapshot, at most once a second, and after [Catalog.Invalidate]. All methods are safe for use by
// several goroutines.
type Catalog struct {
	discovery discovery.DiscoveryInterfaceWithContext
	dynamic   dynamic.Interface
	access    authorization.SelfSubjectAccessReviewsGetter

	turn chan struct{} // held while asking the server

	mu         sync.Mutex
	snapshot   *snapshot
	generation int   // counts invalidations
	attempts   int   // counts requests to the server
	failure    error // of the last attempt, if others may share it
	// status has what is known of the schemas of status, by resource, as far as they were asked for.
	status map[schema.GroupVersionResource]Status
	// scales has the results of [Catalog.ScalePath].
	scales map[schema.GroupVersionResource]dsl.Path
}

// New returns a catalog without a snapshot. Discovery() and AuthorizationV1() of a clientset are suitable clients.
func New(
	discovery discovery.DiscoveryInterfaceWithContext, dynamic dynamic.Interface,
	access authorization.SelfSubjectAccessReviewsGetter,
) *Catalog {
	return &Catalog{discovery: discovery, dynamic: dynamic, access: access, turn: make(chan struct{}, 1)}
}

// Dial returns a catalog of the cluster that config reaches. An error means that the cluster could not
// be asked.
func Dial(ctx context.Context, config *rest.Config) (*Catalog, error) {
	typed, err := kube.New(config)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	if _, err := typed.Discovery.ServerVersionWithContext(ctx); err != nil {
		return nil, fmt.Errorf("asking the API server: %w", err)
	}
	return New(typed.Discovery, dyn, typed.AuthorizationV1()), nil
}

// Resolve finds a watchable resource by its plural name. Without a version it returns the version that the server
// prefers, or else the first that has the resource. The error wraps [ErrMissing] if it is not served. If its API
// group is broken, the error says so, and a later call may succeed.
func (c *Catalog) Resolve(ctx context.Context, name dsl.ResourceName) (Resource, error) {
	gv := schema.GroupVersion{Group: name.Group, Version: name.Version}
	r, err := c.find(ctx, gv, "resource "+name.Resource, func(r Resource) bool {
		return r.GVR.Resource == name.Resource
	})
	if err == nil {
		err = r.Watchable()
	}
	if err != nil {
		return Resource{}, fmt.Errorf("resolving resource %s: %w", name, err)
	}
	return r, nil
}

// KindOf finds the resource of an apiVersion and kind. Its errors are those of [Catalog.Resolve]; the resource need
// not be watchable.
func (c *Catalog) KindOf(ctx context.Context, gvk schema.GroupVersionKind) (Resource, error) {
	r, err := c.find(ctx, gvk.GroupVersion(), "kind "+gvk.Kind, func(r Resource) bool {
		return r.Kind == gvk.Kind
	})
	if err != nil {
		return Resource{}, fmt.Errorf("resolving kind %s of %s: %w", gvk.Kind, gvk.GroupVersion(), err)
	}
	return r, nil
}

// All returns what the server serves: groups by their names, of a group the preferred version first; and the
// groups that it does not know wholly. An error means that the server could not be asked.
func (c *Catalog) All(ctx context.Context) (all []Resource, broken []string, err error) {
	known, _, _ := c.state()
	if known == nil || !known.fresh() {
		if known, err = c.renew(ctx); err != nil {
			return nil, nil, fmt.Errorf("asking what the API server serves: %w", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known.groups)) {
		in := known.group(name)
		for _, version := range in.versions {
			all = append(all, in.resources[version]...)
		}
		if len(in.broken) > 0 {
			broken = append(broken, name)
		}
	}
	return all, broken, nil
}

// Invalidate makes the next call ask the server, for example after a change of a CRD.
func (c *Catalog) Invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	c.snapshot, c.status, c.scales = nil, nil, nil
}

// InvalidateOld is Invalidate after a response that contradicts the snapshot, such as a 404 for a path. A snapshot of the
// last second is kept, so that many such responses lead to one request.
func (c *Catalog) InvalidateOld() {
	if known, _, _ := c.state(); known != nil && !known.fresh() {
		c.Invalidate()
	}
}

func (c *Catalog) find(
	ctx context.Context, gv schema.GroupVersion, what string, wanted func(Resource) bool,
) (Resource, error) {
	known, _, _ := c.state()
	if known != nil {
		r, err := known.find(gv, what, wanted)
		if err == nil || known.fresh() {
			return r, err
		}
	}
	known, err := c.renew(ctx)
	if err != nil {
		return Resource{}, fmt.Errorf("asking what the API server serves: %w", err)
	}
	return known.find(gv, what, wanted)
}

// renew asks the server. A caller that waited for another's request shares the result, also an error, unless the
// other's context had ended or the snapshot was invalidated in the meantime.
func (c *Catalog) renew(ctx context.Context) (*snapshot, error) {
	_, before, _ := c.state()
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	known, attempts, failure := c.state()
	if attempts > before && known != nil && known.fresh() {
		return known, nil
	}
	if attempts > before && failure != nil {
		return nil, failure
	}
	return c.ask(ctx)
}

func (c *Catalog) state() (known *snapshot, attempts int, failure error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.snapshot, c.attempts, c.failure
}

// ask is called by one at a time.
func (c *Catalog) ask(ctx context.Context) (*snapshot, error) {
	c.mu.Lock()
	generation := c.generation
	c.mu.Unlock()
	answer, err := takeSnapshot(ctx, c.discovery)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attempts++
	c.failure = err
	if ctx.Err() != nil {
		c.failure = nil
	}
	if err == nil && generation == c.generation {
		c.snapshot = answer
	}
	return answer, err
}

// Access asks the server which of the verbs this process lacks for objects of the resource. An empty namespace means all
// namespaces, and an empty name means all objects. A verb for a subresource is written "patch status". The
// missing ones come back as they were given, in order. An error means that the server could not
// be asked. All verbs are asked for at once.
func (c *Catalog) Access(
	ctx context.Context, gvr schema.GroupVersionResource, objects cache.ObjectName, verbs ...string,
) (missing []string, err error) {
	missing, err = c.Lacking(ctx, authorizationv1.ResourceAttributes{
		Group: gvr.Group, Version: gvr.Version, Resource: gvr.Resource, Namespace: objects.Namespace, Name: objects.Name,
	}, verbs...)
	if err != nil {
		return nil, fmt.Errorf("reviewing access to %s: %w", gvr.GroupResource(), err)
	}
	return missing, nil
}

// Lacking is [Catalog.Access] for anything that a right can be about: the verbs and their subresources are filled in.
func (c *Catalog) Lacking(ctx context.Context, what authorizationv1.ResourceAttributes, verbs ...string) (missing []string, err error) {
	allowed, errs := make([]bool, len(verbs)), make([]error, len(verbs))
	var asking sync.WaitGroup
	for i, text := range verbs {
		about := what
		about.Verb, about.Subresource, _ = strings.Cut(text, " ")
		asking.Go(func() { allowed[i], errs[i] = c.Allowed(ctx, about) })
	}
	asking.Wait()
	for i, text := range verbs {
		if errs[i] != nil {
			return nil, errs[i]
		}
		if !allowed[i] {
			missing = append(missing, text)
		}
	}
	return missing, nil
}

// Allowed asks the server whether this process may do something. An error means that it could not be asked.
func (c *Catalog) Allowed(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	answer, err := c.access.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}
