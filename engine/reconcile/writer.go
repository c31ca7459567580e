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
	// Form is the form of objects in the cache.
	Form    cached.Form
	Clients Clients
	// Conditions knows whether the resource has conditions.
	Conditions *ConditionsSchema
	// Renamer moves marks of earlier names of the operator. Managers are its field managers under all its names. Markers
	// are prefixes of the field managers of earlier versions that marked objects as handled; see [patch.Marker].
	Renamer           *patch.Renamer
	Managers, Markers []string
	// Feeds watches CRDs for fields that a schema lacks. Schemas counts changes of the resource's CRD, if CRDs are
	// watched.
	Feeds   *source.Factory
	Schemas *atomic.Int64

	shown func(*unstructured.Unstructured) *unstructured.Unstructured
}

// Clients makes clients of the API server for a resource, in a namespace unless that is empty.
type Clients interface {
	// Client returns a client that reads and writes whole objects.
	Client(gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface
	// Handled returns a client for the objects that handlers look at: answers to its writes lack managedFields.
	Handled(gvr schema.GroupVersionResource, namespace string) patch.Client
}

// NewWriter returns a writer with derived fields filled in.
func NewWriter(w Writer) *Writer {
	w.shown = w.Form.Shows()
	return &w
}

// Shown returns an object of the API server in the form of the cache.
func (w *Writer) Shown(o *unstructured.Unstructured) *unstructured.Unstructured { return w.shown(o) }

// Live reads an object before a write. The error is patch.ErrGone if the object is gone.
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

// Target returns the target of a write for handlers that saw the object in the given generation.
func (w *Writer) Target(base *unstructured.Unstructured, generation int64, now time.Time) patch.Target {
	served, rules := w.Own.Resource(), w.Rules
	return patch.Target{
		Client: w.Clients.Handled(served.GVR, base.GetNamespace()), Object: base, Resource: served.GVR.GroupResource(),
		Subresource: served.Status, Manager: rules.Operator.Name, Earlier: rules.Names[1:], Prefix: rules.Prefix, Generation: generation, Now: now,
	}
}

// move moves the marks of earlier names of the operator; see [patch.Renamer.Move].
func (w *Writer) move(ctx context.Context, key cache.ObjectName, o *unstructured.Unstructured) (patch.Result, error) {
	return w.Renamer.Move(ctx, w.marked(key, o))
}

// marked returns the target of a write that moves marks.
func (w *Writer) marked(key cache.ObjectName, o *unstructured.Unstructured) patch.Target {
	gvr := w.Own.Resource().GVR
	return patch.Target{Client: w.Clients.Client(gvr, key.Namespace), Object: o, Resource: gvr.GroupResource(), Manager: w.Rules.Operator.Name}
}

// Dropped starts the watch of CRDs, because the API server dropped fields that a schema lacks. It returns the note about
// that.
func (w *Writer) Dropped(result patch.Result) Note {
	w.Feeds.WantCRDs() // if the schema gets the fields, they are sent again
	return Note{Line: "the API server dropped fields that its schema does not have", Warning: true, Values: []any{"fields", fmt.Sprint(result.Dropped)}}
}

// hasMarker reports whether an earlier version of the operator has marked an object as handled in
// status.observedGeneration.
func (w *Writer) hasMarker(o *unstructured.Unstructured) bool {
	return w.Rules.Progress.Stores && patch.HasMarker(o, w.Markers)
}

// takeOver moves that mark to the state annotation. It reads the object first, because caches do not hold all of its
// managedFields. The object of the result is nil if the object is gone.
func (w *Writer) takeOver(ctx context.Context, key cache.ObjectName, o *unstructured.Unstructured) (out patch.Result, err error) {
	target := w.marked(key, o)
	for attempt := 0; attempt == 0 || patch.CanRetry(err, attempt); attempt++ {
		if out.Object, err = target.Live(ctx); out.Object != nil && w.hasMarker(out.Object) {
			target.Object = out.Object
			out, err = w.storeMark(ctx, target)
		}
	}
	if err != nil {
		return out, fmt.Errorf("storing in an annotation what status.observedGeneration marks as handled: %w", err)
	}
	return out, nil
}

// storeMark is takeOver for a live object.
func (w *Writer) storeMark(ctx context.Context, target patch.Target) (out patch.Result, err error) {
	text, err := progress.TakenOver(&w.Rules.Progress, target.Object, draftOf(w.Shown(target.Object)).Look)
	if err != nil {
		return out, err
	}
	now, err := patch.TakeOver(ctx, target, w.Markers, w.Rules.Progress.Annotation, text)
	if err != nil {
		return out, err
	}
	return patch.Result{Object: now, Written: []*unstructured.Unstructured{now}, Whole: true}, nil
}
