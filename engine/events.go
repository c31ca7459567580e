// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"

	"github.com/handwerk-dev/handwerk/dsl"
)

// maxNote is the longest note that the API server takes, in bytes.
const maxNote = 1024

// recorder sends Events through client-go's broadcaster, which counts repeated ones instead of
// adding them.
type recorder struct {
	broadcaster events.EventBroadcaster
	sink        events.EventRecorder
}

func newRecorder(client kubernetes.Interface, operator string) *recorder {
	b := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	return &recorder{broadcaster: b, sink: b.NewRecorder(runtime.NewScheme(), operator)}
}

// start begins to send; what is recorded earlier is sent then.
func (r *recorder) start(ctx context.Context) error {
	if err := r.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("starting Events: %w", err)
	}
	return nil
}

func (r *recorder) stop() { r.broadcaster.Shutdown() }

// report records an Event of the object. Action says what was being done, as in a handler's id.
func (r *recorder) report(o runtime.Object, action string, kind dsl.EventType, reason, note string) {
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
	r.sink.Eventf(o, nil, name, reason, action, "%s", note)
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
		r.engine.events.report(r.object, r.handler, kind, reason, fmt.Sprintf(note, args...))
	}
}
