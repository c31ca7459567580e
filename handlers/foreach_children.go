// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
)

// entryChildren are the children of an object as one entry of a handler sees them. Of the handler's children, it has only
// the entry's own, so each name is unique.
type entryChildren struct {
	dsl.Children
	entries *actions.Entries
	key     string
	taken   *taken
}

// taken records which entry has made which object, for entries that run one after the other. Two entries that make
// the same object would undo each other's changes for ever.
type taken struct {
	namespace string // the owner's namespace
	mu        sync.Mutex
	by        map[[3]string]string
}

// take records that an entry makes an object. The error names another entry that has made it.
func (t *taken) take(desired any, key, handler string) error {
	object, known := whose(desired)
	if !known {
		return nil // Apply refuses it and says why
	}
	one := dsl.CollisionError{Kind: object.Kind, Namespace: cmp.Or(object.Namespace, t.namespace), Name: object.Name}
	t.mu.Lock()
	defer t.mu.Unlock()
	id := [3]string{object.APIVersion + " " + one.Kind, one.Namespace, one.Name}
	if other, is := t.by[id]; is && other != key {
		one.Handler = handler + "/" + entryID(other)
		return dsl.Permanent(&one) // the other entry has ended when this one is retried
	}
	if t.by == nil {
		t.by = map[[3]string]string{}
	}
	t.by[id] = key
	return nil
}

// All returns the children of other handlers and of the entry.
func (c entryChildren) All() ([]dsl.ChildObject, error) {
	all, err := c.Children.All()
	return c.entries.Seen(all, c.key), err
}

// whose returns the kind and metadata of a child, which may be a map or any value that is an object in JSON.
func whose(desired any) (out metav1.PartialObjectMetadata, known bool) {
	if tree, isMap := desired.(map[string]any); isMap {
		u := unstructured.Unstructured{Object: tree}
		out.APIVersion, out.Kind, out.Namespace, out.Name = u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName()
		return out, true
	}
	text, err := json.Marshal(desired)
	return out, err == nil && json.Unmarshal(text, &out) == nil
}

// take records that the entry makes a child, if the child is one of the handler.
func (c entryChildren) take(desired any, specs ...dsl.ChildSpec) error {
	if len(specs) == 0 || !makes(c.entries, specs[0].Handler) || specs[0].Name == "" {
		return nil
	}
	return c.taken.take(desired, c.key, c.entries.ID)
}

// keyed adds the entry's key to a child of the handler.
func (c entryChildren) keyed(s dsl.ChildSpec) dsl.ChildSpec {
	if makes(c.entries, s.Handler) && s.Name != "" {
		s.Key = c.key
	}
	return s
}

// Stale calls Stale with the entry's key.
func (c entryChildren) Stale(ctx context.Context, desired any, s dsl.ChildSpec) (bool, *unstructured.Unstructured, error) {
	if err := c.take(desired, s); err != nil {
		return false, nil, err
	}
	return c.Children.Stale(ctx, desired, c.keyed(s))
}

// Apply calls Apply with the entry's key.
func (c entryChildren) Apply(ctx context.Context, desired any, specs ...dsl.ChildSpec) (*unstructured.Unstructured, error) {
	if err := c.take(desired, specs...); err != nil {
		return nil, err
	}
	specs = slices.Clone(specs)
	for i := range specs {
		specs[i] = c.keyed(specs[i])
	}
	return c.Children.Apply(ctx, desired, specs...)
}

// Live calls Live with the entry's key.
func (c entryChildren) Live(ctx context.Context, desired any, s dsl.ChildSpec) (*unstructured.Unstructured, error) {
	return dsl.LiveChild(ctx, c.Children, desired, c.keyed(s))
}

// Enter calls Enter with the entry's key.
func (c entryChildren) Enter(ctx context.Context, children ...dsl.DesiredChild) error {
	children = slices.Clone(children)
	for i := range children {
		children[i].ChildSpec = c.keyed(children[i].ChildSpec)
	}
	return c.Children.Enter(ctx, children...)
}

// Remove calls Remove with the entry's key.
func (c entryChildren) Remove(ctx context.Context, child dsl.ChildObject) error {
	child.ChildSpec = c.keyed(child.ChildSpec)
	return c.Children.Remove(ctx, child)
}

// entryID returns the id of an entry's sub-handler: its key, or if that is not a valid id, a valid part of it with
// a digest.
func entryID(key string) string {
	if (&dsl.Handler{ID: key}).WrongID() == "" {
		return key
	}
	digest := fnv.New32a()
	_, _ = digest.Write([]byte(key)) // it returns no error
	id := strings.Map(func(c rune) rune {
		if strings.ContainsRune("-_.", c) || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return c
		}
		return '-'
	}, key)
	id = strings.Trim(id[:min(len(id), 50)], "-_.")
	return strings.TrimLeft(fmt.Sprintf("%s-%08x", id, digest.Sum32()), "-")
}
