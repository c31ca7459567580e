// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// Writer writes to the objects of one resource. All fields are required.
type Writer struct {
	Rules *Rules
	Host  Host
	Own   *source.Source
	// Form is what the cache holds of an object.
	Form    cached.Form
	Clients Clients
	// Conditions knows whether the resource has conditions.
	Conditions *ConditionsSchema
	// Renamer moves marks of earlier names of the operator. Managers are its field managers under all its names, and Markers the
	// prefixes of those with which its earlier versions have marked objects as handled; see [patch.Marker].
	Renamer           *patch.Renamer
	Managers, Markers []string
	// Feeds watches CRDs where a field that a schema lacks may come. Schemas counts changes of the resource's CRD, as far as CRDs
	// are watched.
	Feeds   *source.Factory
	Schemas *atomic.Int64

	shown func(*unstructured.Unstructured) *unstructured.Unstructured
}

// Clients makes clients of the API server for a resource, in a namespace unless that is empty.
type Clients interface {
	// Client returns one that reads and writes whole objects.
	Client(gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface
	// Handled returns one for the objects that handlers look at: answers to its writes lack managedFields.
	Handled(gvr schema.GroupVersionResource, namespace string) patch.Client
}

// NewWriter returns the writer without what is not worked out from these.
func NewWriter(w Writer) *Writer {
	w.shown = w.Form.Shows()
	return &w
}

// Shown returns an object of the API server as the cache shows it.
func (w *Writer) Shown(o *unstructured.Unstructured) *unstructured.Unstructured { return w.shown(o) }

// Live reads an object that is to be written. The error is patch.ErrGone where it is not there any more.
func (w *Writer) Live(ctx context.Context, key cache.ObjectName, uid types.UID) (*unstructured.Unstructured, error) {
	live, err := w.Host.Read(ctx, w.Own.Resource().GVR, key)
	if err != nil {
		return nil, fmt.Errorf("reading object before it is written: %w", err)
	}
	if live == nil || live.GetUID() != uid {
		return nil, patch.ErrGone
	}
	return live, nil
}

// Target is an object of the resource to write to, for handlers that saw it in a generation.
func (w *Writer) Target(base *unstructured.Unstructured, generation int64, now time.Time) patch.Target {
	served, rules := w.Own.Resource(), w.Rules
	return patch.Target{
		Client: w.Clients.Handled(served.GVR, base.GetNamespace()), Object: base, Resource: served.GVR.GroupResource(),
		Subresource: served.Status, Manager: rules.Operator.Name, Earlier: rules.Names[1:], Prefix: rules.Prefix, Generation: generation, Now: now,
	}
}

// move moves the marks of earlier names of the operator. Wrote gets the object after each write. It returns nil when the object is
// gone.
func (w *Writer) move(ctx context.Context, key cache.ObjectName, o *unstructured.Unstructured, wrote func(now *unstructured.Unstructured)) (*unstructured.Unstructured, error) {
	target := patch.Target{Client: w.Clients.Client(w.Own.Resource().GVR, key.Namespace), Object: o, Resource: w.Own.Resource().GVR.GroupResource()}
	return w.Renamer.Move(ctx, target, wrote)
}

// Dropped has CRDs watched where the API server dropped fields, as the schema may get them. The note says so.
func (w *Writer) Dropped(result patch.Result) Note {
	w.Feeds.WantCRDs() // should the schema get them, they are sent again
	return Note{Line: "the API server dropped fields that its schema does not have", Warning: true, Values: []any{"fields", fmt.Sprint(result.Dropped)}}
}

// hasMarker reports whether an earlier version of the operator has marked an object as handled in status.observedGeneration.
func (w *Writer) hasMarker(o *unstructured.Unstructured) bool {
	return w.Rules.Ledger.Stores && patch.HasMarker(o, w.Markers)
}

// takeOver moves that mark to the state annotation. Wrote gets the object after the write. It returns nil when the object is gone.
func (w *Writer) takeOver(ctx context.Context, key cache.ObjectName, o *unstructured.Unstructured, wrote func(now *unstructured.Unstructured)) (*unstructured.Unstructured, error) {
	served := w.Own.Resource().GVR
	target := patch.Target{Client: w.Clients.Client(served, key.Namespace), Object: o, Resource: served.GroupResource(), Manager: w.Rules.Operator.Name}
	mark := patch.Mark{Markers: w.Markers, Annotation: w.Rules.Ledger.Annotation, State: func(live *unstructured.Unstructured) (string, error) {
		return progress.TakenOver(&w.Rules.Ledger, live, draftOf(w.Shown(live)).Look)
	}}
	return mark.TakeOver(ctx, target, wrote)
}
