// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package catalog knows which resources the API server serves, and asks it what the operator's account may do.
package catalog

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
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
)

// ErrMissing is wrapped by the errors of [Catalog.Resolve] and [Catalog.KindOf] when the API
// server does not serve the group, the version or the resource: it may come with a CRD. All other
// errors tell that the server could not be asked, or not about that group, or that the resource
// is of no use.
var ErrMissing = errors.New("not served by the API server")

// freshness is how old an answer of the server may be to tell that something is missing.
const freshness = time.Second

// Resource is a resource as the API server serves it.
type Resource struct {
	GVR schema.GroupVersionResource
	// Kind is what its objects are, as in "Deployment".
	Kind string
	// Namespaced: its objects live in namespaces.
	Namespaced bool
	// Status: it has a status subresource.
	Status bool
	// Short are kubectl's short names of it. They are shared: not to be changed.
	Short []string
	// Verbs are what can be done with it, as in "list". They are shared: not to be changed.
	Verbs []string
}

// GroupKind is the kind of its objects, with its group.
func (r Resource) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: r.GVR.Group, Kind: r.Kind}
}

// Generation is the one of an object of the resource that conditions tell of; zero where the status is no resource of its own: each
// write makes another generation there, so what it tells is never of the newest.
func (r Resource) Generation(o metav1.Object) int64 {
	if !r.Status {
		return 0
	}
	return o.GetGeneration()
}

// Catalog answers from one snapshot of what the server serves. It asks the server again when
// something is not in the snapshot, at most once a second, and after [Catalog.Invalidate]. All
// methods may be called at any time from any goroutine.
type Catalog struct {
	discovery discovery.DiscoveryInterfaceWithContext
	dynamic   dynamic.Interface
	access    authorization.SelfSubjectAccessReviewsGetter

	turn chan struct{} // held by the one who asks the server

	mu         sync.Mutex
	snapshot   *snapshot
	generation int   // counts what made the snapshot invalid
	attempts   int   // counts the questions to the server
	failure    error // the last attempt's, if others may share it
	// status has the fields of status by resource, as far as anybody asked for them.
	status map[schema.GroupVersionResource]sets.Set[string]
}

// New returns a catalog that has asked nothing yet. The clients of a clientset fit: its
// Discovery() and AuthorizationV1().
func New(
	discovery discovery.DiscoveryInterfaceWithContext, dynamic dynamic.Interface,
	access authorization.SelfSubjectAccessReviewsGetter,
) *Catalog {
	return &Catalog{discovery: discovery, dynamic: dynamic, access: access, turn: make(chan struct{}, 1)}
}

// Dial returns a catalog of the cluster that config reaches. The error tells that the cluster could not
// be asked.
func Dial(ctx context.Context, config *rest.Config) (*Catalog, error) {
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	if _, err := typed.ServerVersionWithContext(ctx); err != nil {
		return nil, fmt.Errorf("asking the API server: %w", err)
	}
	return New(typed.DiscoveryClient, dyn, typed.AuthorizationV1()), nil
}

// Resolve finds a resource that can be watched by its plural name. Without a version it is the one
// that the server prefers, or else the first that has the resource. The error wraps [ErrMissing]
// when it is not served; when its own API group is broken, the error says so, and a later call may
// succeed.
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

// KindOf finds the resource of an object by the object's apiVersion and kind. Its errors are those
// of [Catalog.Resolve]; the resource need not be one that can be watched.
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
// groups of which it does not know all. The error tells that the server could not be asked.
func (c *Catalog) All(ctx context.Context) (all []Resource, broken []string, err error) {
	known, _, _ := c.state()
	if known == nil || !known.fresh() {
		if known, err = c.renew(ctx); err != nil {
			return nil, nil, fmt.Errorf("asking what the API server serves: %w", err)
		}
	}
	for _, group := range slices.Sorted(maps.Keys(known.versions)) {
		for _, version := range known.versions[group] {
			all = append(all, known.resources[schema.GroupVersion{Group: group, Version: version}]...)
		}
	}
	for gv := range known.broken {
		broken = append(broken, gv.Group)
	}
	return all, broken, nil
}

// Invalidate makes the next question go to the server, as when a CRD came, changed or went.
func (c *Catalog) Invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	c.snapshot, c.status = nil, nil
}

// Doubt is Invalidate after an answer that does not fit the snapshot, as a 404 of a path. A snapshot of the last second stays, so
// that many such answers cost one question.
func (c *Catalog) Doubt() {
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

// renew asks the server. Who waited for another's answer shares it, also when it is an error,
// unless that one's context had ended or the snapshot became invalid meanwhile.
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

// Access asks the server which of the verbs this process lacks for the resource in the namespace,
// or in all of them when it is empty. A verb for a subresource is written "patch status". The
// missing ones come back as they were given, in order. The error tells that the server could not
// be asked.
func (c *Catalog) Access(
	ctx context.Context, gvr schema.GroupVersionResource, namespace string, verbs ...string,
) (missing []string, err error) {
	for _, text := range verbs {
		verb, subresource, _ := strings.Cut(text, " ")
		allowed, err := c.Allowed(ctx, authorizationv1.ResourceAttributes{
			Group: gvr.Group, Version: gvr.Version, Resource: gvr.Resource, Subresource: subresource, Namespace: namespace, Verb: verb,
		})
		if err != nil {
			return nil, fmt.Errorf("reviewing access to %s: %w", gvr.GroupResource(), err)
		}
		if !allowed {
			missing = append(missing, text)
		}
	}
	return missing, nil
}

// Allowed asks the server whether this process may do something. The error tells that it could not be asked.
func (c *Catalog) Allowed(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	answer, err := c.access.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}
