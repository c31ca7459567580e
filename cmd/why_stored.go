// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
)

// recordedMost is how many recorded children are read.
const recordedMost = 100

// stored reads what operators have left on the object: their books, and their inventories.
func (a *alone) stored(ctx context.Context, o *unstructured.Unstructured) {
	notes := o.GetAnnotations()
	for _, key := range slices.Sorted(maps.Keys(notes)) {
		prefix, what, _ := strings.Cut(key, "/")
		operator, _, _ := strings.Cut(prefix, ".")
		if !strings.HasPrefix(notes[key], bookkeeping.StateMark) || a.operator != "" && operator != a.operator {
			continue
		}
		var err error
		switch what {
		case "state":
			err = a.book(operator, notes[key], o)
		case "children":
			err = a.inventory(ctx, notes[key], o)
		}
		if err != nil {
			a.out.Unread = append(a.out.Unread, "annotation "+key+": "+err.Error())
		}
	}
}

// book says of each handler in an operator's book how far it is.
func (a *alone) book(operator, text string, o *unstructured.Unstructured) error {
	b, err := progress.Load(text, o.GetUID())
	if err != nil {
		return err
	}
	for id, e := range b.All() {
		h := storedHandler(id, e)
		if a.operator == "" {
			h.Operator = operator
		}
		a.out.Handlers = append(a.out.Handlers, h)
	}
	return nil
}

// storedHandler says how far a handler was when its book was stored.
func storedHandler(id string, e progress.Entry) why.Handler {
	try := e.Try
	f := why.Facts{
		Handler: id, Reason: why.Stored, Cause: string(try.Cause), Message: try.Message,
		Failed: try.Failed || e.FailedFor != "", Waits: try.Waiting && !try.Done,
	}
	out := why.Handler{ID: id, Reason: f.Reason.String(), Message: f.Message}
	if try.Cause != "" && !try.Done {
		f.Reason, f.Attempts = why.ToRun, try.Failures()
		out.Cause, out.Attempts, out.Reason = f.Cause, f.Attempts, f.Reason.String()
		if !try.Due.IsZero() {
			out.Next = &try.Due
		}
	}
	out.State, out.Says = f.State(), why.Sentence(f)
	return out
}

// inventory says how the children are that an operator has recorded, and which objects its handlers patch.
func (a *alone) inventory(ctx context.Context, text string, o *unstructured.Unstructured) error {
	inventory, err := ownership.ParseInventory(text, o.GetUID())
	if err != nil || inventory == nil {
		return err
	}
	for i, place := range inventory.Places() {
		child := why.Child{Kind: place.Kind.Kind, Namespace: place.Namespace, Name: place.Name, By: "record", State: "unseen"}
		if title, known := inventory.Title(place); known {
			spec, _ := ownership.ParseTitle(title)
			child.Handler, child.As = spec.Handler, spec.Name
		}
		if i < recordedMost {
			a.child(ctx, &child, place)
		}
		a.out.Children = append(a.out.Children, child)
	}
	for _, t := range inventory.Targets() {
		a.out.Targets = append(a.out.Targets, why.Target{Kind: t.Kind.Kind, Namespace: t.Namespace, Name: t.Name, Handler: t.Handler, Entry: t.Key, Manager: t.Manager})
	}
	return nil
}

// child reads a child.
func (a *alone) child(ctx context.Context, c *why.Child, place ownership.Place) {
	mapping, err := a.found.mapper.RESTMapping(place.Kind)
	if err != nil {
		c.Says = err.Error()
		return
	}
	live, err := a.objects.Resource(mapping.Resource).Namespace(place.Namespace).Get(ctx, place.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		c.Says = "the inventory lists it, and it is not there"
	case err != nil:
		a.unread("child "+place.Describe(), "get", schema.GroupResource{Group: mapping.Resource.Group, Resource: mapping.Resource.Resource}, place.Namespace, err)
	default:
		c.Is(dsl.ReadinessOf(live))
	}
}
