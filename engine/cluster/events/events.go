// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package events sends Events through client-go's broadcaster, which counts repeated ones. It limits how many are about one
// object.
package events

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	broadcast "k8s.io/client-go/tools/events"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/cluster/kube"
	"github.com/handwerk-dev/handwerk/engine/cluster/notfound"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// noteMost is the longest note that the API server takes, in bytes.
const noteMost = 1024

// quiet and most bound the wait for Events at the end: until none was sent for the first, at most for the
// second.
const (
	quiet = 20 * time.Millisecond
	most  = 2 * time.Second
)

// Recorder sends the Events of one operator.
type Recorder struct {
	broadcaster broadcast.EventBroadcaster
	events      broadcast.EventRecorder
	sink        *sink
	once        sync.Once
	limit       limit
	log         logr.Logger
	metrics     *ops.Metrics
}

// Settings are what a recorder needs.
type Settings struct {
	Client kube.Interface
	// Operator is the name under which Events are reported.
	Operator string
	Log      logr.Logger
	// Metrics count the Events that are dropped because there are too many.
	Metrics *ops.Metrics
	// Access receives the errors of sending Events.
	Access Access
	// Ending knows the namespaces that are being deleted.
	Ending *notfound.Namespaces
}

// Access learns from refused requests which rights are missing, as [access.Monitor] does.
type Access interface {
	OnError(error)
}

// New returns a recorder that does not send yet.
func New(s Settings) *Recorder {
	to := &sink{EventSinkImpl: broadcast.EventSinkImpl{Interface: s.Client.EventsV1()}, access: s.Access, ending: s.Ending}
	b := broadcast.NewBroadcaster(to)
	return &Recorder{broadcaster: b, sink: to, events: b.NewRecorder(runtime.NewScheme(), s.Operator), log: s.Log, metrics: s.Metrics}
}

// Start begins to send; what is recorded earlier is sent then.
func (r *Recorder) Start(ctx context.Context) error {
	if err := r.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("starting Events: %w", err)
	}
	return nil
}

// Stop ends recording and waits until what was recorded is sent, for 2 s at most.
func (r *Recorder) Stop() {
	r.once.Do(func() {
		<-time.After(quiet) // the recorder hands over each Event in a goroutine of its own
		r.broadcaster.Shutdown()
		for end := time.Now().Add(most); time.Now().Before(end); {
			// The broadcaster starts a goroutine for each Event and does not report its end, so
			// wait until no request is under way.
			<-time.After(quiet)
			if r.sink.active.Load() == 0 {
				return
			}
		}
	})
}

// sink knows how many Events are under way.
type sink struct {
	broadcast.EventSinkImpl
	active atomic.Int64
	ending *notfound.Namespaces
	access Access
}

// Create sends a new Event. A namespace that is being deleted takes none, and a process that does not lead has nothing
// to report: client-go would try again and send the Event of one term in a later one. Such an Event is dropped.
func (s *sink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	s.active.Add(1)
	defer s.active.Add(-1)
	if s.ending.Rejection(event.Namespace) != nil {
		return event, nil
	}
	_, err := s.EventSinkImpl.Create(ctx, named(event))
	if s.ending.Record(event.Namespace, err) || errors.Is(err, transport.ErrNotLeading) {
		return event, nil
	}
	s.access.OnError(err)
	return event, err
}

// Patch counts one more of an Event.
func (s *sink) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	s.active.Add(1)
	defer s.active.Add(-1)
	_, err := s.EventSinkImpl.Patch(ctx, named(event), data)
	if errors.Is(err, transport.ErrNotLeading) {
		return event, nil
	}
	s.access.OnError(err)
	return event, err
}

// named returns the Event with a name of its own. The name that client-go gives is the object's and the nanosecond. When two
// Events of one nanosecond have the same name, the API server refuses the second one. That happens in virtual time, and where
// the clock is coarse. client-go keeps its own name and never sees this one, so a repeated Event gets the same name again.
func named(event *eventsv1.Event) *eventsv1.Event {
	at := strings.LastIndexByte(event.Name, '.') + 1
	nanoseconds, err := strconv.ParseUint(event.Name[at:], 16, 64)
	if err != nil || at == 0 {
		return event // its name is a UUID, because the object's is too long
	}
	hash := fnv.New32a()
	for _, part := range []string{event.Type, event.Action, event.Reason, event.ReportingController, event.ReportingInstance, string(event.Regarding.UID)} {
		_, _ = hash.Write([]byte(part + "\x00")) // it has no errors to return
	}
	out := *event
	out.Name = event.Name[:at] + strconv.FormatUint(nanoseconds^uint64(hash.Sum32()), 16)
	return &out
}

// Warn records what the engine has to say of the object. Action says what was being done, as in a
// handler's id.
func (r *Recorder) Warn(o runtime.Object, action, reason, note string) {
	r.Send(ops.ByEngine, o, action, dsl.Warning, reason, note)
}

// Send records an Event, unless there are too many of the object.
func (r *Recorder) Send(by ops.Reporter, o runtime.Object, action string, kind dsl.EventType, reason, note string) {
	about := regarding(o)
	if !r.admits(by, about, sameness{kind, action, reason}) {
		return
	}
	if len(note) > noteMost {
		cut := noteMost - len("…")
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
func (r *Recorder) admits(by ops.Reporter, about *corev1.ObjectReference, what sameness) bool {
	id := string(about.UID)
	if id == "" {
		id = about.Kind + "/" + about.Namespace + "/" + about.Name
	}
	admitted, first := r.limit.admit(subject{id, by}, what, time.Now())
	if admitted {
		return true
	}
	r.metrics.EventDropped(by)
	if first {
		r.log.Info("Events of an object are dropped: there are too many different ones", logmark.Warning, true, "kind", about.Kind,
			"namespace", about.Namespace, "name", about.Name, "reporter", string(by), "reason", what.reason,
			"burst", burst, "thenOneEvery", refill.String())
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

// Attempt is an attempt of a handler, which may send Events until it is over.
type Attempt interface {
	Over() bool
}

// Reporter is [dsl.Events] for one attempt of a handler.
type Reporter struct {
	recorder *Recorder
	object   runtime.Object
	handler  string
	attempt  Attempt
	warned   atomic.Bool
}

var _ dsl.Events = (*Reporter)(nil)

// Reporter returns the Events of a handler about an object, until its attempt is over.
func (r *Recorder) Reporter(o runtime.Object, handler string, attempt Attempt) *Reporter {
	return &Reporter{recorder: r, object: o, handler: handler, attempt: attempt}
}

// Event records an Event, unless the attempt is over.
func (r *Reporter) Event(kind dsl.EventType, reason, note string, args ...any) {
	if r.attempt.Over() {
		return
	}
	if kind == dsl.Warning {
		r.warned.Store(true)
	}
	r.recorder.Send(ops.ByHandler, r.object, r.handler, kind, reason, fmt.Sprintf(note, args...))
}

// EventAbout records an Event about another object, unless the attempt is over.
func (r *Reporter) EventAbout(object any, kind dsl.EventType, reason, note string, args ...any) error {
	return r.recorder.eventAbout(r.attempt, r.handler, object, kind, reason, fmt.Sprintf(note, args...))
}

func (r *Recorder) eventAbout(a Attempt, handler string, object any, kind dsl.EventType, reason, note string) error {
	about, err := dsl.Object(object)
	if err != nil {
		return dsl.Permanent(fmt.Errorf("reporting event %s: %w", reason, err))
	}
	if !a.Over() {
		r.Send(ops.ByHandler, about, handler, kind, reason, note)
	}
	return nil
}

// Warned reports whether the attempt has reported a warning of its own.
func (r *Reporter) Warned() bool { return r.warned.Load() }

// Log is [dsl.Events] for handlers without an object: until the attempt is over, it logs Events, and sends the ones about other objects.
// All fields are required.
type Log struct {
	Log      logr.Logger
	Attempt  Attempt
	Recorder *Recorder
	Handler  string
}

var _ dsl.Events = Log{}

// Event logs an Event.
func (l Log) Event(kind dsl.EventType, reason, note string, args ...any) {
	if !l.Attempt.Over() {
		l.Log.Info("handler reports", "type", string(kind), "reason", reason, "note", fmt.Sprintf(note, args...))
	}
}

// EventAbout records an Event about another object.
func (l Log) EventAbout(object any, kind dsl.EventType, reason, note string, args ...any) error {
	return l.Recorder.eventAbout(l.Attempt, l.Handler, object, kind, reason, fmt.Sprintf(note, args...))
}
