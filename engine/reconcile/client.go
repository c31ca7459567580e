// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expiry"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/children/apply"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
)

// ClientSettings are the common settings of one operator's clients. All fields are required.
type ClientSettings struct {
	// Manager is the field manager of writes.
	Manager string
	// Renamer takes over fields that earlier names of the operator have applied.
	Renamer *patch.Renamer
	// Renewer renews fields that the operator has applied in versions that their CRDs have dropped.
	Renewer *apply.Renewer
	Catalog *discovery.Catalog
	// Clients reaches resources on the server. Feeds has the caches of the resources that the operator watches.
	Clients Clients
	Sources *source.Factory
}

// Noter notes what a client writes.
type Noter interface {
	// Wrote notes a write.
	Wrote(apply.Operation, schema.GroupVersionResource, *unstructured.Unstructured)
	// Deleted notes the deletion of an object of a kind.
	Deleted(kind string, gvr schema.GroupVersionResource, key cache.ObjectName)
}

// client is the client of one attempt of a handler, which writes in the span.
type client struct {
	*ClientSettings
	span  *transport.Span
	noter Noter
}

// For returns a client that writes in a span, and reports its writes to a noter.
func (s *ClientSettings) For(span *transport.Span, noter Noter) dsl.Client {
	return &client{s, span, noter}
}

// Unnoted returns a client that writes in a span, and whose writes no cache has to follow.
func (s *ClientSettings) Unnoted(span *transport.Span) dsl.Client { return s.For(span, unnoted{}) }

// unnoted notes nothing.
type unnoted struct{}

func (unnoted) Wrote(apply.Operation, schema.GroupVersionResource, *unstructured.Unstructured) {}

func (unnoted) Deleted(string, schema.GroupVersionResource, cache.ObjectName) {}

// Get returns one object, from the cache if the operator watches it.
func (c *client) Get(ctx context.Context, resource, namespace, name string) (*unstructured.Unstructured, error) {
	ctx, done := c.span.Read(ctx)
	defer done()
	served, err := c.resolve(ctx, resource)
	if err != nil {
		return nil, err
	}
	key := cache.ObjectName{Namespace: namespace, Name: name}
	if f := c.Sources.Whole(served.GVR, namespace); f != nil {
		// Only a hit answers: an object that the cache lacks may be outside of the watch.
		if o, found := f.Get(key); found {
			return o.Tree(), nil
		}
	}
	return c.Clients.Client(served.GVR, namespace).Get(ctx, name, metav1.GetOptions{})
}

// List returns objects, from the cache if the operator watches them.
func (c *client) List(ctx context.Context, resource, namespace, selector string) ([]*unstructured.Unstructured, error) {
	ctx, done := c.span.Read(ctx)
	defer done()
	served, err := c.resolve(ctx, resource)
	if err != nil {
		return nil, err
	}
	wanted, err := labels.Parse(selector)
	if err != nil {
		return nil, dsl.Permanent(fmt.Errorf("listing %s: %w", resource, err))
	}
	var out []*unstructured.Unstructured
	if f := c.Sources.Whole(served.GVR, namespace); f != nil {
		for _, o := range f.Objects(namespace) {
			if wanted.Empty() || wanted.Matches(labels.Set(o.GetLabels())) {
				out = append(out, o.Tree())
			}
		}
	} else {
		list, err := c.Clients.Client(served.GVR, namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	return out, nil
}

// Apply applies an object by server-side apply.
func (c *client) Apply(ctx context.Context, desired any) (*unstructured.Unstructured, error) {
	return c.send(ctx, apply.Applied, desired, func(ctx context.Context, to dynamic.ResourceInterface, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if err := expiry.Check(ctx, u); err != nil {
			return nil, fmt.Errorf("applying %s %s: %w", u.GetKind(), cache.MetaObjectToName(u), err)
		}
		how := metav1.ApplyOptions{FieldManager: c.Manager, Force: true}
		result, err := to.Apply(ctx, u.GetName(), u, how)
		renewed, err := c.Renewer.RenewRejected(ctx, to, u.GetName(), u.GetUID(), err)
		if renewed != nil {
			result, err = to.Apply(ctx, u.GetName(), u, how)
		}
		if err != nil || !c.Renamer.Joins(result) {
			return result, err
		}
		// Fields that only an earlier name of the operator has applied become this name's, so that the next apply drops
		// them.
		moved, err := c.Renamer.Move(ctx, patch.Target{Client: to, Object: result})
		if err != nil || moved.Object == nil {
			return result, err
		}
		return to.Apply(ctx, u.GetName(), u, how)
	})
}

// Create creates an object.
func (c *client) Create(ctx context.Context, object any) (*unstructured.Unstructured, error) {
	return c.send(ctx, apply.Created, object, func(ctx context.Context, to dynamic.ResourceInterface, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return to.Create(ctx, u, metav1.CreateOptions{FieldManager: c.Manager})
	})
}

// MergePatch sends a merge patch.
func (c *client) MergePatch(ctx context.Context, resource, namespace, name string, patch map[string]any, subresource ...string) (*unstructured.Unstructured, error) {
	ctx, done, err := c.span.Write(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	served, err := c.resolve(ctx, resource)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, dsl.Permanent(fmt.Errorf("patching %s %s: %w", resource, name, err))
	}
	result, err := c.Clients.Client(served.GVR, namespace).Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: c.Manager}, subresource...)
	if err == nil {
		c.noter.Wrote(apply.Patched, served.GVR, result)
	}
	return result, err
}

// Delete deletes an object.
func (c *client) Delete(ctx context.Context, resource, namespace, name, uid string) error {
	return c.remove(ctx, cache.ObjectName{Namespace: namespace, Name: name}, types.UID(uid), func(ctx context.Context) (discovery.Resource, error) {
		return c.resolve(ctx, resource)
	})
}

// DeleteObject deletes an object by its kind.
func (c *client) DeleteObject(ctx context.Context, object *unstructured.Unstructured) error {
	return c.remove(ctx, cache.MetaObjectToName(object), object.GetUID(), func(ctx context.Context) (discovery.Resource, error) {
		return c.Catalog.KindOf(ctx, object.GroupVersionKind())
	})
}

// remove deletes the object with the key, of the resource that find returns.
func (c *client) remove(ctx context.Context, key cache.ObjectName, uid types.UID, find func(context.Context) (discovery.Resource, error)) error {
	ctx, done, err := c.span.Write(ctx)
	if err != nil {
		return err
	}
	defer done()
	served, err := find(ctx)
	if err != nil {
		return err
	}
	background := metav1.DeletePropagationBackground // some kinds, such as Job, leave their pods behind otherwise
	options := metav1.DeleteOptions{PropagationPolicy: &background}
	if uid != "" {
		options.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	err = c.Clients.Client(served.GVR, key.Namespace).Delete(ctx, key.Name, options)
	if err == nil {
		c.noter.Deleted(served.Kind, served.GVR, key)
	}
	return err
}

// send decodes a whole object, finds its resource, writes it and notes the write.
func (c *client) send(ctx context.Context, operation apply.Operation, object any, write func(context.Context, dynamic.ResourceInterface, *unstructured.Unstructured) (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	ctx, done, err := c.span.Write(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	plain, err := dsl.Object(object)
	if err != nil {
		return nil, dsl.Permanent(err)
	}
	if err := dsl.CheckData(plain, dsl.Discreet(ctx)); err != nil {
		return nil, fmt.Errorf("writing %s %s: %w", plain.GetKind(), cache.MetaObjectToName(plain), err)
	}
	served, err := c.Catalog.KindOf(ctx, plain.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	result, err := write(ctx, c.Clients.Client(served.GVR, plain.GetNamespace()), plain)
	if err == nil {
		c.noter.Wrote(operation, served.GVR, result)
	}
	return result, err
}

func (c *client) resolve(ctx context.Context, resource string) (discovery.Resource, error) {
	name, err := dsl.ParseResourceName(resource)
	if err != nil {
		return discovery.Resource{}, dsl.Permanent(err)
	}
	return c.Catalog.Resolve(ctx, name)
}
