// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
)

// Objects are the objects of a cluster.
type Objects struct {
	List []*unstructured.Unstructured
	// Namespace is the one that the operator is deployed in. Empty means that it is looked for among the objects.
	Namespace string
	// Warnings name the objects that could not be read.
	Warnings []string
}

// Cluster reads from a cluster what its operators work on.
type Cluster struct {
	// Config reaches the API server. It needs no right to write. Required.
	Config *rest.Config
	// Lookup looks up resources. Nil means that their scope is guessed.
	Lookup rbac.Lookup
	// Namespaces may have the operator, the most likely one first.
	Namespaces []string
}

// Read reads the CRDs, own objects, children, related and patched objects of operators, the namespaces, and what the
// operators keep for themselves. The operators are versions of one.
func (c Cluster) Read(ctx context.Context, operators ...*dsl.Operator) (out Objects, err error) {
	r := &reader{seen: map[target]bool{}, uids: map[types.UID]bool{}, handled: map[schema.GroupResource]bool{}}
	if r.client, err = dynamic.NewForConfig(c.Config); err != nil {
		return out, fmt.Errorf("connecting: %w", err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return out, fmt.Errorf("connecting: %w", err)
	}
	r.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))
	if err := r.read(ctx, target{GroupResource: schema.GroupResource{Resource: "namespaces"}}); err != nil {
		return out, err
	}
	for _, op := range operators {
		for _, one := range op.Handled() {
			r.handled[schema.GroupResource{Group: one.Name.Group, Resource: one.Name.Resource}] = true
		}
		if out.Namespace, err = r.own(ctx, op, c.Namespaces); err != nil {
			return out, err
		}
		for _, rule := range rbac.Of(op, rbac.Settings{Namespace: out.Namespace, Lookup: c.Lookup}) {
			if err := r.rule(ctx, rule); err != nil {
				return out, err
			}
		}
	}
	out.List, out.Warnings = r.objects, r.warnings
	return out, nil
}

// target names the objects of one request: all objects of a resource, its objects in one namespace, or a single object.
type target struct {
	schema.GroupResource
	namespace, name string
}

// reader collects objects.
type reader struct {
	client   dynamic.Interface
	mapper   meta.RESTMapper
	seen     map[target]bool
	uids     map[types.UID]bool
	objects  []*unstructured.Unstructured
	warnings []string
	// handled are the resources that the operators handle. Without their objects, a plan would be empty.
	handled map[schema.GroupResource]bool
}

const crdGroup = "apiextensions.k8s.io"

// rule reads the objects that a right is about. Rights on whole subresources, and on what processes do, are about none.
func (r *reader) rule(ctx context.Context, rule rbac.Rule) error {
	resource := schema.GroupResource{Group: rule.Group, Resource: rule.Resource}
	switch {
	case rule.Optional: // the operator works without it, as without the Pods of its children
		return nil
	case rule.Subresource != "" || isAside(resource) || resource.Resource == "namespaces" && resource.Group == "":
		return nil
	case strings.HasPrefix(rule.Group, "auth"), rule.Group == crdGroup, slices.Contains([]string{"bind", "escalate"}, rule.Verb):
		return nil
	case rule.Verb == "create" && rule.Namespace != "" && len(rule.Reasons) > 0 && rule.Reasons[0].Who == rbac.Engine:
		return nil // the register and the key are read by their names
	}
	if strings.Contains(rule.Group, ".") && !dsl.BuiltIn(rule.Group) {
		crd := target{schema.GroupResource{Group: crdGroup, Resource: "customresourcedefinitions"}, "", resource.String()}
		if err := r.read(ctx, crd); err != nil {
			return err
		}
	}
	return r.read(ctx, target{resource, rule.Namespace, rule.Name})
}

// own reads what an operator keeps for itself, and the kinds of children that its earlier versions have made. It returns
// the namespace that the operator is deployed in.
func (r *reader) own(ctx context.Context, op *dsl.Operator, namespaces []string) (string, error) {
	if fixed := op.Settings.LeaderElection.Namespace; fixed != "" {
		namespaces = []string{fixed}
	}
	for _, namespace := range namespaces {
		before := len(r.objects)
		for _, place := range op.OwnPlaces(namespace) {
			if isAside(place.Resource) {
				continue
			}
			if err := r.read(ctx, target{place.Resource, place.Namespace, place.Name}); err != nil {
				return "", err
			}
		}
		for _, o := range r.objects[before:] {
			if err := r.registered(ctx, o); err != nil {
				return "", err
			}
		}
		if len(r.objects) > before {
			return namespace, nil
		}
	}
	return namespaces[0], nil
}

// registered reads the kinds of children that a register lists.
func (r *reader) registered(ctx context.Context, register *unstructured.Unstructured) error {
	data, _, _ := unstructured.NestedStringMap(register.Object, "data")
	for _, kinds := range data {
		for line := range strings.FieldsSeq(kinds) {
			mapping, err := r.mapper.RESTMapping(schema.ParseGroupKind(line))
			if err != nil {
				continue // it is no kind, or is not served any more
			}
			if err := r.read(ctx, target{GroupResource: mapping.Resource.GroupResource()}); err != nil {
				return err
			}
		}
	}
	return nil
}

// page is the number of objects that one request lists.
const page = 500

// read reads the objects of a target once. A missing right is a warning, unless the operators handle the resource.
func (r *reader) read(ctx context.Context, of target) error {
	if r.seen[of] || r.seen[target{of.GroupResource, of.namespace, ""}] || r.seen[target{GroupResource: of.GroupResource}] {
		return nil
	}
	r.seen[of] = true
	gvr, err := r.mapper.ResourceFor(of.WithVersion(""))
	if meta.IsNoMatchError(err) {
		r.warnings = append(r.warnings, fmt.Sprintf("the cluster does not serve %s", of.GroupResource))
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for %s: %w", of.GroupResource, err)
	}
	client := dynamic.ResourceInterface(r.client.Resource(gvr))
	if of.namespace != "" {
		client = r.client.Resource(gvr).Namespace(of.namespace)
	}
	err = r.fetch(ctx, client, of)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err) && !r.handled[of.GroupResource]:
		r.warnings = append(r.warnings, fmt.Sprintf("%s cannot be read, so the plan takes none for given: %v", of.GroupResource, err))
		return nil
	case err != nil:
		return fmt.Errorf("reading %s: %w", of.GroupResource, err)
	}
	return nil
}

// fetch gets or lists the objects of a target.
func (r *reader) fetch(ctx context.Context, client dynamic.ResourceInterface, of target) error {
	if of.name != "" {
		o, err := client.Get(ctx, of.name, metav1.GetOptions{})
		if err == nil {
			r.add(o)
		}
		return err
	}
	options := metav1.ListOptions{Limit: page}
	for {
		list, err := client.List(ctx, options)
		if err != nil {
			return err
		}
		for i := range list.Items {
			r.add(&list.Items[i])
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// add adds an object, unless it was read by its name before.
func (r *reader) add(o *unstructured.Unstructured) {
	if !r.uids[o.GetUID()] {
		r.uids[o.GetUID()] = true
		r.objects = append(r.objects, o)
	}
}
