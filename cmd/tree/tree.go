// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package tree finds the children of an object in a cluster, and their children.
//
// Children by reference name their owner in metadata.ownerReferences. Operators of Handwerk list other children
// in an annotation of the owner, its inventory; these may be in other namespaces. Any operator's inventory counts. The same
// annotation lists objects that handlers patch. They are no children, so a tree shows nothing below them.
package tree

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
)

// most is the greatest number of objects in a tree.
const most = 1000

// Node is an object with its children.
type Node struct {
	// APIVersion is empty if the kind is not served.
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Ties say how it belongs to the object above: "reference", "inventory of operator foo", or "patched by operator foo",
	// which makes no child of it.
	Ties []string `json:"ties,omitempty"`
	// Ready is nil if the object could not be read. Reason and Message say what it lacks.
	Ready   *bool      `json:"ready,omitempty"`
	Reason  string     `json:"reason,omitempty"`
	Message string     `json:"message,omitempty"`
	Created *time.Time `json:"created,omitempty"`
	// Again: it is elsewhere in the tree, with its children.
	Again    bool    `json:"again,omitempty"`
	Children []*Node `json:"children,omitempty"`
}

// Tree is an object with all below it.
type Tree struct {
	Root *Node `json:"root"`
	// Unread says what could not be read, so children may be missing.
	Unread []string `json:"unread,omitempty"`
}

// Clients reach the API server.
type Clients struct {
	Discovery discovery.DiscoveryInterface
	Mapper    meta.RESTMapper
	Dynamic   dynamic.Interface
	Metadata  metadata.Interface
}

// Of returns the tree below an object. The error says that the object cannot be read.
func Of(ctx context.Context, c Clients, resource schema.GroupVersionResource, namespace, name string) (*Tree, error) {
	b := &builder{Clients: c, out: &Tree{}, owned: map[types.UID][]child{}, listed: map[string]bool{}, seen: map[types.UID]bool{}}
	o, err := c.Dynamic.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	b.out.Root, b.nodes = &Node{}, 1
	b.fill(ctx, b.out.Root, o)
	slices.Sort(b.out.Unread)
	b.out.Unread = slices.Compact(b.out.Unread)
	return b.out, ctx.Err()
}

// builder builds one tree.
type builder struct {
	Clients
	out   *Tree
	kinds []schema.GroupVersionResource
	// owned are the objects by the uids of those that they refer to, of the namespaces that are listed.
	owned  map[types.UID][]child
	listed map[string]bool
	seen   map[types.UID]bool
	// nodes counts those of the tree.
	nodes int

	mu sync.Mutex
}

// child is an object that belongs to another one, or that handlers of the other one patch.
type child struct {
	place   ownership.Place
	tie     string
	patched bool
}

func (b *builder) unread(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.out.Unread = append(b.out.Unread, fmt.Sprintf(format, args...))
}

// describe enters an object into a node.
func describe(n *Node, o *unstructured.Unstructured) {
	n.APIVersion, n.Kind, n.Namespace, n.Name = o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName()
	if at := o.GetCreationTimestamp(); !at.IsZero() {
		n.Created = &at.Time
	}
	if now, err := dsl.ReadinessOf(o); err != nil {
		n.Message = err.Error()
	} else {
		n.Ready, n.Reason, n.Message = &now.Ready, now.Reason, now.Message
	}
}

// fill enters an object and all below it into a node.
func (b *builder) fill(ctx context.Context, n *Node, o *unstructured.Unstructured) {
	describe(n, o)
	if n.Again = b.seen[o.GetUID()]; n.Again {
		return
	}
	b.seen[o.GetUID()] = true
	for _, of := range b.children(ctx, o) {
		if b.nodes == most {
			b.unread("what else is below %s: the tree has %d objects already", ownership.PlaceOf(o).Describe(), most)
			return
		}
		b.nodes++
		below := &Node{Kind: of.place.Kind.Kind, Namespace: of.place.Namespace, Name: of.place.Name, Ties: of.ties}
		n.Children = append(n.Children, below)
		live, err := b.read(ctx, of.place, below)
		switch {
		case apierrors.IsNotFound(err):
			below.Ready, below.Reason = new(bool), dsl.ReasonNotFound
		case err != nil:
			b.unread("%s: %v", of.place.Describe(), err)
		case of.patched:
			describe(below, live)
		default:
			b.fill(ctx, below, live)
		}
	}
}

// tied is a child with all that ties it to its owner.
type tied struct {
	place ownership.Place
	ties  []string
	// patched: it is no child.
	patched bool
}

// children returns the children of an object, and what its handlers patch: those that refer to it from its namespace, for a reference from another one means
// nothing to Kubernetes, and those that are recorded on it, in the order of their kinds and names.
func (b *builder) children(ctx context.Context, o *unstructured.Unstructured) (out []tied) {
	b.list(ctx, o.GetNamespace())
	all := b.recorded(o)
	for _, c := range b.owned[o.GetUID()] {
		if o.GetNamespace() == "" || c.place.Namespace == o.GetNamespace() {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(x, y child) int {
		return cmp.Or(strings.Compare(x.place.Kind.Kind, y.place.Kind.Kind), strings.Compare(x.place.String(), y.place.String()), strings.Compare(x.tie, y.tie))
	})
	for _, c := range all {
		if last := len(out) - 1; last >= 0 && out[last].place == c.place {
			if !slices.Contains(out[last].ties, c.tie) {
				out[last].ties = append(out[last].ties, c.tie)
			}
			out[last].patched = out[last].patched && c.patched
			continue
		}
		out = append(out, tied{c.place, []string{c.tie}, c.patched})
	}
	return out
}

// recorded returns the children that operators have recorded on an object, and what their handlers patch.
func (b *builder) recorded(o *unstructured.Unstructured) (out []child) {
	for key, text := range o.GetAnnotations() {
		prefix, is := strings.CutSuffix(key, "/children")
		if !is || !strings.HasPrefix(text, bookkeeping.StateMark) {
			continue
		}
		operator, _, _ := strings.Cut(prefix, ".")
		inventory, err := ownership.ParseInventory(text, o.GetUID())
		if err != nil {
			b.unread("the children of operator %s, of %s: %v", operator, ownership.PlaceOf(o).Describe(), err)
			continue
		}
		for _, place := range inventory.Places() {
			out = append(out, child{place: place, tie: "inventory of operator " + operator})
		}
		for _, t := range inventory.Targets() {
			out = append(out, child{t.Place, "patched by operator " + operator, true})
		}
	}
	return out
}

// read reads an object. The node gets the version in which it is served.
func (b *builder) read(ctx context.Context, place ownership.Place, n *Node) (*unstructured.Unstructured, error) {
	mapping, err := b.Mapper.RESTMapping(place.Kind)
	if err != nil {
		return nil, fmt.Errorf("its kind is not served: %w", err)
	}
	n.APIVersion = mapping.GroupVersionKind.GroupVersion().String()
	return b.Dynamic.Resource(mapping.Resource).Namespace(place.Namespace).Get(ctx, place.Name, metav1.GetOptions{})
}
