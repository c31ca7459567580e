// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/sandbox/clock"
)

// The components of a cluster that record Events.
const (
	deploymentController  = "deployment-controller"
	replicaSetController  = "replicaset-controller"
	statefulSetController = "statefulset-controller"
	daemonSetController   = "daemonset-controller"
	jobController         = "job-controller"
	cronJobController     = "cronjob-controller"
	defaultScheduler      = "default-scheduler"
)

// eventsStay is how long an Event stays, as in a cluster.
const eventsStay = time.Hour

// recorder records Events about objects, as the components of a cluster do. An Event that happens again is counted. A nil
// recorder records nothing.
type recorder struct {
	link  link
	clock clock.Clock
	sent  map[happening]*sentEvent
	// order has the happenings in the order of their first Events.
	order []happening
	last  int64
}

// happening says what has happened, and to which object.
type happening struct {
	uid                             types.UID
	component, kind, reason, action string
	field, message                  string
}

// sentEvent is an Event that was sent.
type sentEvent struct {
	namespace, name string
	since           time.Time
	count           int32
}

func newRecorder(n link, clock clock.Clock) *recorder {
	return &recorder{link: n, clock: clock, sent: map[happening]*sentEvent{}}
}

// normal records what a component has done with an object.
func (r *recorder) normal(ctx context.Context, o object, component, reason, format string, args ...any) {
	r.record(ctx, o, happening{component: component, kind: corev1.EventTypeNormal, reason: reason, message: fmt.Sprintf(format, args...)})
}

// warning records what a component cannot do with an object.
func (r *recorder) warning(ctx context.Context, o object, component, reason, format string, args ...any) {
	r.record(ctx, o, happening{component: component, kind: corev1.EventTypeWarning, reason: reason, message: fmt.Sprintf(format, args...)})
}

// record sends an Event. As in a cluster, an Event that cannot be sent is lost.
func (r *recorder) record(ctx context.Context, o object, h happening) {
	if r == nil {
		return
	}
	r.expire(ctx)
	h.uid = o.GetUID()
	if old := r.sent[h]; old != nil {
		old.count++
		_, _ = r.link.merge(ctx, eventPath(old.namespace, old.name), h.component, r.again(h, old.count))
		return
	}
	e := r.event(o, h)
	if _, err := r.link.create(ctx, eventPath(e.Namespace, ""), h.component, e); err == nil {
		r.sent[h] = &sentEvent{namespace: e.Namespace, name: e.Name, since: r.clock.Now(), count: 1}
		r.order = append(r.order, h)
	}
}

// event returns the first Event of a happening.
func (r *recorder) event(o object, h happening) *corev1.Event {
	r.last = max(r.last+1, time.Now().UnixNano()) // by the clock of the machine, so that the name is a new one after a restart, too
	now := metav1.NewTime(r.clock.Now()).Rfc3339Copy()
	kind := o.GetObjectKind().GroupVersionKind()
	namespace := o.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	e := &corev1.Event{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s.%x", o.GetName(), r.last)},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(),
			ResourceVersion: o.GetResourceVersion(), FieldPath: h.field,
		},
		Type: h.kind, Reason: h.reason, Message: h.message, Action: h.action,
		ReportingController: h.component,
	}
	if h.action != "" { // the scheduler uses the newer form
		e.EventTime, e.ReportingInstance = metav1.NewMicroTime(r.clock.Now()), h.component
		return e
	}
	e.FirstTimestamp, e.LastTimestamp, e.Count = now, now, 1
	e.Source.Component = h.component
	if pod, is := o.(*corev1.Pod); is && h.component == kubelet {
		e.Source.Host, e.ReportingInstance = pod.Spec.NodeName, pod.Spec.NodeName
	}
	return e
}

// again returns the change of an Event that has happened so many times.
func (r *recorder) again(h happening, count int32) map[string]any {
	if h.action != "" {
		return map[string]any{"series": map[string]any{"count": count, "lastObservedTime": metav1.NewMicroTime(r.clock.Now())}}
	}
	return map[string]any{"count": count, "lastTimestamp": metav1.NewTime(r.clock.Now()).Rfc3339Copy()}
}

// expire deletes the Events that have stayed long enough.
func (r *recorder) expire(ctx context.Context) {
	for len(r.order) > 0 {
		oldest := r.sent[r.order[0]]
		if r.clock.Now().Sub(oldest.since) < eventsStay {
			return
		}
		_ = r.link.delete(ctx, eventPath(oldest.namespace, oldest.name), metav1.DeleteOptions{}) // its namespace may be gone
		delete(r.sent, r.order[0])
		r.order = r.order[1:]
	}
}

// eventPath returns the path of an Event, or of all Events of a namespace.
func eventPath(namespace, name string) []string {
	out := []string{"api", "v1", "namespaces", namespace, "events"}
	if name != "" {
		out = append(out, name)
	}
	return out
}
