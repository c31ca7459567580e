// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/ops"
)

// maxNote is the longest note that the API server takes, in bytes.
const maxNote = 1024

// eventsQuiet and eventsMost bound the wait for Events at the end: until none was sent for the
// first, at most for the second.
const (
	eventsQuiet = 20 * time.Millisecond
	eventsMost  = 2 * time.Second
)

// recorder sends Events through client-go's broadcaster, which counts repeated ones instead of
// adding them. How many others there may be of one object is limited.
type recorder struct {
	broadcaster events.EventBroadcaster
	events      events.EventRecorder
	sink        *eventSink
	once        sync.Once
	limit       eventLimit
	log         logr.Logger
	dropped     func(ops.Reporter) // is told of each Event that is not sent
}

func newRecorder(client kubernetes.Interface, operator string, log logr.Logger, dropped func(ops.Reporter)) *recorder {
	sink := &eventSink{EventSinkImpl: events.EventSinkImpl{Interface: client.EventsV1()}}
	b := events.NewBroadcaster(sink)
	return &recorder{broadcaster: b, sink: sink, events: b.NewRecorder(runtime.NewScheme(), operator), log: log, dropped: dropped}
}

// start begins to send; what is recorded earlier is sent then.
func (r *recorder) start(ctx context.Context) error {
	if err := r.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("starting Events: %w", err)
	}
	return nil
}

// stop ends recording and waits until what was recorded is sent, for a while.
func (r *recorder) stop() {
	r.once.Do(func() {
		<-time.After(eventsQuiet) // the recorder hands over each Event in a goroutine of its own
		r.broadcaster.Shutdown()
		for end := time.Now().Add(eventsMost); time.Now().Before(end); {
			// The broadcaster starts a goroutine for each Event and tells nobody when it ends, so
			// the end is when nothing is under way after a moment.
			<-time.After(eventsQuiet)
			if r.sink.active.Load() == 0 {
				return
			}
		}
	})
}

// eventSink knows how many Events are under way.
type eventSink struct {
	events.EventSinkImpl
	active atomic.Int64
	// failed is told of each error; nil when nobody asks.
	failed func(error)
}

// Create sends a new Event. That a namespace which is going takes none any more is no fault, and
// client-go would log it as one.
func (s *eventSink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	s.active.Add(1)
	defer s.active.Add(-1)
	created, err := s.EventSinkImpl.Create(ctx, event)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return event, nil
	}
	s.tell(err)
	return created, err
}

// Patch counts one more of an Event.
func (s *eventSink) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	s.active.Add(1)
	defer s.active.Add(-1)
	patched, err := s.EventSinkImpl.Patch(ctx, event, data)
	s.tell(err)
	return patched, err
}

func (s *eventSink) tell(err error) {
	if err != nil && s.failed != nil {
		s.failed(err)
	}
}

// warn records what the engine has to say of the object. Action says what was being done, as in a
// handler's id.
func (r *recorder) warn(o runtime.Object, action, reason, note string) {
	r.send(ops.ByEngine, o, action, dsl.Warning, reason, note)
}

// send records an Event, unless there are too many of the object.
func (r *recorder) send(by ops.Reporter, o runtime.Object, action string, kind dsl.EventType, reason, note string) {
	about := regarding(o)
	if !r.admits(by, about, sort{kind, action, reason}) {
		return
	}
	if len(note) > maxNote {
		cut := maxNote - len("…")
		for !utf8.RuneStart(note[cut]) {
			cut--
		}
		note = note[:cut] + "…"
	}
	name := corev1.EventTypeNormal
	if kind == dsl.Warning {
		name = corev1.EventTypeWarning
	}
	r.events.Eventf(about, nil, name, reason, action, "%s", note)
}

// admits reports whether an Event may be sent, and says once of many why it may not.
func (r *recorder) admits(by ops.Reporter, about *corev1.ObjectReference, what sort) bool {
	id := string(about.UID)
	if id == "" {
		id = about.Kind + "/" + about.Namespace + "/" + about.Name
	}
	admitted, first := r.limit.admit(subject{id, by}, what, time.Now())
	if admitted {
		return true
	}
	r.dropped(by)
	if first {
		r.log.Info("Events of an object are dropped: there are too many different ones", dsl.LogWarning, true, "kind", about.Kind,
			"namespace", about.Namespace, "name", about.Name, "reporter", string(by), "reason", what.reason,
			"burst", eventsBurst, "thenOneEvery", eventsRefill.String())
	}
	return false
}

// regarding names the object without its version: Events about two versions of an object would not
// be counted as one.
func regarding(o runtime.Object) *corev1.ObjectReference {
	m, err := meta.Accessor(o)
	if err != nil {
		return &corev1.ObjectReference{} // no object: the engine's always are
	}
	version, kind := o.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	return &corev1.ObjectReference{APIVersion: version, Kind: kind, Namespace: m.GetNamespace(), Name: m.GetName(), UID: m.GetUID()}
}

// reporter is dsl.Events for one attempt.
type reporter struct {
	engine  *Engine
	object  runtime.Object
	handler string
	span    *span
}

var _ dsl.Events = (*reporter)(nil)

// Event records an Event, unless the attempt is over.
func (r *reporter) Event(kind dsl.EventType, reason, note string, args ...any) {
	if r.span.ctx.Err() == nil {
		r.engine.events.send(ops.ByHandler, r.object, r.handler, kind, reason, fmt.Sprintf(note, args...))
	}
}
