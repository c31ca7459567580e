// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// names are the keys of the operator's marks, under its name and under its earlier names.
type names struct {
	keys    ownership.Keys
	earlier []ownership.Keys
}

func namesOf(op *dsl.Operator) names {
	n := names{keys: ownership.KeysOf(op)}
	for _, earlier := range op.Earlier() {
		n.earlier = append(n.earlier, ownership.KeysOf(earlier))
	}
	return n
}

// of returns the keys of an object's marks. Until the marks are moved, those are the keys of an earlier name of the
// operator.
func (n names) of(o metav1.Object) ownership.Keys {
	if len(n.earlier) > 0 && !n.keys.Made(o) {
		for _, keys := range n.earlier {
			if keys.Made(o) {
				return keys
			}
		}
	}
	return n.keys
}

// hasInventory reports whether an owner has an inventory of children under any of the names.
func (n names) hasInventory(owner *cached.Object) bool {
	notes := owner.GetAnnotations()
	return notes[n.keys.Inventory] != "" || slices.ContainsFunc(n.earlier, func(keys ownership.Keys) bool { return notes[keys.Inventory] != "" })
}

// Rename moves the marks on the owner's children from the operator's earlier names to its name, before handlers see
// them. It finds the children by their owner references, and by the owner's inventory.
func (s *Session) Rename(ctx context.Context) error {
	if s.family.renamer == nil || s.in.Object.GetName() == "" {
		return nil
	}
	for kind := range s.family.kinds.all {
		for _, o := range kind.OwnedBy(string(s.in.Object.GetUID())) {
			if err := s.rename(ctx, kind, o); err != nil {
				return err
			}
		}
		for _, place := range s.owner().Inventory.Places() {
			if place.Kind != kind.Resource().GroupKind() {
				continue
			}
			if o, found := kind.Get(cache.ObjectName{Namespace: place.Namespace, Name: place.Name}); found {
				if err := s.rename(ctx, kind, o); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (s *Session) rename(ctx context.Context, kind *source.Source, o *cached.Object) error {
	which := id{kind.Resource().GVR, cache.MetaObjectToName(o)}
	if s.lister.has(which) || !s.family.renamer.Finds(o) {
		return nil
	}
	_, err := s.move(ctx, kind, which, o.Tree())
	return err
}

// move moves the marks of one child, and keeps the moved child. It returns nil if the child is gone. Kind is nil for a
// child of an undeclared kind.
func (s *Session) move(ctx context.Context, kind *source.Source, which id, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	target := patch.Target{Client: s.family.settings.Host.Client(which.gvr, which.key.Namespace), Object: o, Resource: which.gvr.GroupResource()}
	moved, err := s.family.renamer.Move(ctx, target)
	for _, now := range moved.Written {
		caches := []*source.Source{kind}
		if kind == nil {
			caches = s.journal.showing(which.gvr, now)
		}
		s.journal.written(Write{}, ops.Child, caches, which.gvr, now)
		if kind != nil {
			s.journal.echoes(kind, now)
		}
	}
	if err != nil || moved.Object == nil {
		return nil, err
	}
	s.lister.keep(which, moved.Object)
	s.in.Logger.Log().Info("moved what the operator had left on a child under an earlier name", "child", which.key.String(), "was", s.family.settings.Operator.Was)
	return moved.Object, nil
}
