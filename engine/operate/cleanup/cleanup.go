// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package cleanup removes what an operator has left in a cluster, for an uninstall: its finalizers, annotations,
// labels and conditions on objects, its register, key and lock, and earlier configurations. It works only while no
// process of the operator runs, because a process would restore the marks; so it holds the operator's Lease meanwhile.
package cleanup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/children/apply"
	"github.com/handwerk-dev/handwerk/engine/children/prune"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
)

// page is the number of objects in one list request.
const page = 500

// The resources of the operator's own objects.
var (
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	leases      = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// copies are the resources to whose objects Kubernetes copies the annotations of their owners. It does not remove
// them again.
var copies = map[schema.GroupResource]string{
	{Group: "apps", Resource: "deployments"}:  "replicasets",
	{Group: "apps", Resource: "statefulsets"}: "controllerrevisions",
	{Group: "apps", Resource: "daemonsets"}:   "controllerrevisions",
}

// Settings configure a cleanup. Config and Namespace are required.
type Settings struct {
	Config *rest.Config
	// Namespace is the namespace of the operator's pod, with its register, its key and its lock, unless the lock
	// has another one.
	Namespace string
	// Deployment is the name of the operator's Deployment. If it is empty or does not exist, processes are
	// recognised by the lock alone.
	Deployment string
	// DeleteChildren deletes the children. Otherwise they stay, with their owner references and without the operator's marks.
	DeleteChildren bool
	// Report gets a line for each patched object that keeps a handler's fields, or whose earlier values are lost.
	// Optional.
	Report func(text string)
}

// Cleaner cleans up after one operator. It is made by [New].
type Cleaner struct {
	set      Settings
	names    []*dsl.Operator // the operator, and its earlier names
	op       *dsl.Operator
	catalog  *discovery.Catalog
	dynamic  dynamic.Interface
	renewer  *apply.Renewer
	metadata metadata.Interface
	// made are the Leases that Hold has made, as [Found.String] names them. Look leaves them out.
	made []string
	// sawAll: everything could be read, and so far all found fields of patched objects could be released.
	sawAll bool
}

// New returns a Cleaner for an operator.
func New(ctx context.Context, op *dsl.Operator, set Settings) (*Cleaner, error) {
	config := transport.WithDeadline(set.Config)
	config.QPS = -1 // requests are sent one by one
	served, err := discovery.Dial(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	marks, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return &Cleaner{set: set, op: op, names: append([]*dsl.Operator{op}, op.Earlier()...), catalog: served, renewer: apply.NewRenewer(op, served), dynamic: objects, metadata: marks}, nil
}

// Found is an object with marks of the operator, or an object of its own.
type Found struct {
	Resource        discovery.Resource
	Namespace, Name string
	UID             types.UID
	// Child: managedFields say that the operator created the object. Own: it is one of the operator's own objects, such
	// as its register.
	Child, Own bool
	// held: the object has the operator's finalizer.
	held bool
	// managers are the field managers with which handlers have patched the object.
	managers []string
}

// String names the object for people: "Foo default/web".
func (f Found) String() string {
	if f.Namespace == "" {
		return f.Resource.Kind + " " + f.Name
	}
	return f.Resource.Kind + " " + f.Namespace + "/" + f.Name
}

// Findings are the operator's remains.
type Findings struct {
	// Objects have marks, and are handled by the operator. Children were created by it. Patched have no marks, but fields of
	// handlers. Own are its register, key and lock, and earlier configurations.
	Objects, Children, Patched, Own []Found
	// Unseen are the errors for parts that could not be read. They are not cleaned up.
	Unseen []error
	// Within are the only namespaces that were searched, because the account may not list some kind elsewhere.
	// Empty means all.
	Within []string
	// Beside are the namespaces of other deployments of the operator, which work in other namespaces. Only objects
	// in this deployment's scope were searched then, because all deployments have the same marks.
	Beside []string
	// Elsewhere are the namespaces of other deployments that work on the same objects, with their own objects there.
	Elsewhere []string
	// Admission are the namespaces of other deployments whose policies or webhook configurations are in the cluster.
	Admission []string
	// Alone: other deployments are not visible, because the account may not list Leases. Namespaced objects were only
	// searched in this deployment's scope.
	Alone bool
	// chosen are the namespaces whose labels match the scope, if only objects in the scope are searched.
	chosen map[string]bool
}

// Empty reports whether nothing was found.
func (f Findings) Empty() bool { return len(f.Objects)+len(f.Children)+len(f.Patched)+len(f.Own) == 0 }

// Look searches for the operator's remains. It searches objects of its resources, of present and earlier kinds of
// children, of patched kinds, and of kinds to which Kubernetes copies annotations of children. Objects that others have
// written for it, such as pauses of namespaces, count as its own.
func (c *Cleaner) Look(ctx context.Context) (out Findings) {
	kinds, unseen := c.kinds(ctx)
	out.Unseen = unseen
	others, err := c.namesakes(ctx)
	if out.Alone = apierrors.IsForbidden(err) && !c.op.Scope.Everywhere(); err != nil && !apierrors.IsForbidden(err) {
		out.Unseen = append(out.Unseen, err)
	}
	for _, other := range others {
		if other.overlaps {
			out.Elsewhere = append(out.Elsewhere, other.lock.GetNamespace())
		} else {
			out.Beside = append(out.Beside, other.lock.GetNamespace())
		}
	}
	c.choose(ctx, &out)
	for _, r := range kinds {
		if err := c.lookAt(ctx, r, &out); err != nil {
			out.Unseen = append(out.Unseen, err)
		}
	}
	out.keepOwners()
	requests, elsewhere, failed := c.requests(ctx)
	earlier, unread := c.configurations(ctx)
	out.Own, out.Admission = append(requests, earlier...), elsewhere
	for _, err := range []error{failed, unread} {
		if err != nil {
			out.Unseen = append(out.Unseen, err)
		}
	}
	c.lookAtOwn(ctx, &out)
	return out
}

// lookAtOwn finds the objects that the operator keeps for itself.
func (c *Cleaner) lookAtOwn(ctx context.Context, out *Findings) {
	for _, one := range c.own() {
		if slices.Contains(c.made, one.String()) {
			continue
		}
		o, err := c.metadata.Resource(one.Resource.GVR).Namespace(one.Namespace).Get(ctx, one.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			out.Unseen = append(out.Unseen, fmt.Errorf("reading %s: %w", one, err))
		case c.wrote(o) || c.pauses(one):
			one.UID = o.UID
			out.Own = append(out.Own, one)
		}
	}
}

// kinds returns the resources whose objects may have marks, with namespaces if they can be paused. A resource that is
// not served has no objects.
func (c *Cleaner) kinds(ctx context.Context) (out []discovery.Resource, unseen []error) {
	found := map[schema.GroupVersionResource]discovery.Resource{}
	note := func(name string, r discovery.Resource, err error) {
		switch {
		case err == nil:
			found[r.GVR] = r
		case !errors.Is(err, discovery.ErrMissing):
			unseen = append(unseen, fmt.Errorf("looking up %s: %w", name, err))
		}
	}
	c.declared(ctx, note)
	if c.op.Scope.Everywhere() || source.NewScope(source.ScopeSettings{Of: c.op.Scope}).Live() { // otherwise annotations of namespaces do not count
		served, err := c.catalog.Resolve(ctx, dsl.ResourceName{Resource: namespaces.Resource, Version: namespaces.Version})
		note(namespaces.Resource, served, err)
	}
	for _, op := range c.names {
		kinds, err := c.registered(ctx, op)
		if err != nil {
			unseen = append(unseen, err)
		}
		for _, kind := range kinds {
			served, err := c.catalog.KindOf(ctx, kind.WithVersion(""))
			note(kind.String(), served, err)
		}
	}
	for _, r := range slices.Collect(maps.Values(found)) {
		if copied := copies[r.GVR.GroupResource()]; copied != "" {
			served, err := c.catalog.Resolve(ctx, dsl.ResourceName{Resource: copied, Version: r.GVR.Version, Group: r.GVR.Group})
			note(copied, served, err)
		}
	}
	out = slices.SortedFunc(maps.Values(found), func(a, b discovery.Resource) int { return cmp.Compare(a.GVR.String(), b.GVR.String()) })
	return out, unseen
}

// declared notes the operator's resources and the present kinds of its children.
func (c *Cleaner) declared(ctx context.Context, note func(name string, r discovery.Resource, err error)) {
	for _, r := range c.op.Resources() {
		served, err := c.catalog.Resolve(ctx, r.Name)
		note(r.Name.String(), served, err)
		for name, kind := range r.Owned() {
			if name.Resource != "" {
				served, err = c.catalog.Resolve(ctx, name)
			} else {
				served, err = c.catalog.KindOf(ctx, kind)
			}
			note(cmp.Or(name.Resource, kind.Kind), served, err)
		}
		patched, _ := r.PatchedKinds()
		for _, kind := range patched {
			served, err = c.catalog.KindOf(ctx, kind)
			note(kind.Kind, served, err)
		}
	}
}

// registered returns the kinds of children in the operator's register, including those of earlier versions.
func (c *Cleaner) registered(ctx context.Context, op *dsl.Operator) ([]schema.GroupKind, error) {
	o, err := c.dynamic.Resource(configMaps).Namespace(c.home(op)).Get(ctx, op.Register(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the register ConfigMap %s/%s: %w", c.home(op), op.Register(), err)
	}
	return prune.RegisteredKinds(o, c.managers()), nil
}

// home returns the namespace of the operator's register, key and lock.
func (c *Cleaner) home(op *dsl.Operator) string {
	return cmp.Or(op.Settings.LeaderElection.Namespace, c.set.Namespace)
}

// managers returns the operator's present and earlier field managers.
func (c *Cleaner) managers() (out []string) {
	for _, op := range c.names {
		out = append(out, op.Name)
	}
	return out
}

// lookAt lists the objects of a resource in all namespaces. If the account may not do that, it lists the namespaces
// of the operator's scope, if they are known by name.
func (c *Cleaner) lookAt(ctx context.Context, r discovery.Resource, out *Findings) error {
	err := c.list(ctx, r, metav1.NamespaceAll, out)
	within := source.NewScope(source.ScopeSettings{Of: dsl.Scope{Namespaces: c.op.Scope.Namespaces}}) // the labels may have been others
	names, known := within.Names(r.Namespaced)
	if !apierrors.IsForbidden(err) || !known || slices.Contains(names, metav1.NamespaceAll) {
		return err
	}
	for _, name := range names {
		if err := c.list(ctx, r, name, out); err != nil {
			return err
		}
	}
	out.Within = names
	return nil
}

// list lists the objects of a resource in a namespace, or in all, and sorts them by their marks.
func (c *Cleaner) list(ctx context.Context, r discovery.Resource, namespace string, out *Findings) error {
	list := metav1.ListOptions{Limit: page}
	objects, children, patched := len(out.Objects), len(out.Children), len(out.Patched)
	for {
		some, err := c.metadata.Resource(r.GVR).Namespace(namespace).List(ctx, list)
		if apierrors.IsResourceExpired(err) && list.Continue != "" {
			// The server has lost the position of the next page: list everything again, in one request.
			out.Objects, out.Children, out.Patched, list = out.Objects[:objects], out.Children[:children], out.Patched[:patched], metav1.ListOptions{}
			continue
		}
		if err != nil {
			return fmt.Errorf("listing %s: %w", r.GVR.GroupResource(), err)
		}
		for i := range some.Items {
			c.sort(r, &some.Items[i], out)
		}
		if list.Continue = some.Continue; list.Continue == "" {
			return nil
		}
	}
}

// sort adds an object to the findings by its marks.
func (c *Cleaner) sort(r discovery.Resource, o metav1.Object, out *Findings) {
	m := c.marksOf(o)
	f := Found{Resource: r, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), Child: m.child, held: len(m.finalizers) > 0, managers: c.patchers(o)}
	within := f.Namespace
	if r.GVR == namespaces {
		within = f.Name
	}
	switch {
	case m.empty() && len(f.managers) > 0:
		out.Patched = append(out.Patched, f)
	case m.empty() || len(out.Beside) > 0 && !c.inScope(within, out.chosen):
	case out.Alone && within != "" && !c.inScope(within, out.chosen):
	case m.child:
		out.Children = append(out.Children, f)
	default:
		out.Objects = append(out.Objects, f)
	}
}
