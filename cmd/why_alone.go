// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/engine/cluster/kube"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
)

// eventsMost is how many Events of an object are shown, the latest ones.
const eventsMost = 20

// alone reads what the API server has of an object whose operator does not answer, with the rights of the user.
type alone struct {
	found      *discovered
	objects    dynamic.Interface
	kubernetes *kube.Clients
	// operator is the one that is asked; empty for any.
	operator string
	out      *why.Answer
}

// readAlone answers with what the API server has of an object whose operator does not answer, for a reason. The operator may be empty.
func readAlone(ctx context.Context, config *rest.Config, q why.Question, operator string, reason error) (*why.Answer, error) {
	found, err := discover(config)
	if err != nil {
		return nil, err
	}
	a := &alone{found: found, operator: operator}
	if a.objects, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	if a.kubernetes, err = kube.New(config); err != nil {
		return nil, err
	}
	object, resource, err := a.object(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("reading %s/%s: %w", q.Resource, q.Name, err)
	}
	a.out = &why.Answer{
		At: time.Now(), Operator: operator, Resource: resource, Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
		UID: string(object.GetUID()), Generation: object.GetGeneration(),
		Without: "the operator does not answer, so this is from the API server alone: " + reason.Error(),
	}
	a.deletion(object)
	a.conditions(object)
	a.stored(ctx, object)
	a.events(ctx, object)
	return a.out, nil
}

// object reads the object, whose resource is named as in kubectl.
func (a *alone) object(ctx context.Context, q why.Question) (o *unstructured.Unstructured, resource string, err error) {
	name := strings.ToLower(q.Resource)
	if full, _ := schema.ParseResourceArg(name); full != nil {
		if gvr, err := a.found.mapper.ResourceFor(*full); err == nil {
			name = gvr.GroupResource().String()
		}
	}
	gvr, namespace, err := a.found.resource(name, q.Namespace)
	if err != nil {
		return nil, "", err
	}
	o, err = a.objects.Resource(gvr).Namespace(namespace).Get(ctx, q.Name, metav1.GetOptions{})
	return o, gvr.GroupResource().String(), err
}

// deletion says what holds the deletion.
func (a *alone) deletion(o *unstructured.Unstructured) {
	at := o.GetDeletionTimestamp()
	if at == nil {
		return
	}
	a.out.Deletion = &why.Deletion{Since: at.Time, Finalizers: o.GetFinalizers()}
	for _, f := range o.GetFinalizers() {
		a.out.Deletion.Held = append(a.out.Deletion.Held, "finalizer "+f)
	}
}

// conditions reads the object's conditions.
func (a *alone) conditions(o *unstructured.Unstructured) {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		fields, _ := c.(map[string]any)
		text := func(key string) string {
			value, _ := fields[key].(string)
			return value
		}
		a.out.Conditions = append(a.out.Conditions, why.Condition{
			Type: text("type"), Status: text("status"), Reason: text("reason"), Message: text("message"),
		})
	}
}

// events reads the Events about the object. Those about objects without a namespace are in the default one.
func (a *alone) events(ctx context.Context, o *unstructured.Unstructured) {
	in := cmp.Or(o.GetNamespace(), metav1.NamespaceDefault)
	about := fields.OneTermEqualSelector("involvedObject.uid", string(o.GetUID())).String()
	list := &corev1.EventList{}
	err := a.kubernetes.Core().Get().Namespace(in).Resource("events").
		VersionedParams(&metav1.ListOptions{FieldSelector: about}, scheme.ParameterCodec).Do(ctx).Into(list)
	if err != nil {
		a.unread("Events about the object", "list", schema.GroupResource{Resource: "events"}, in, err)
		return
	}
	for _, e := range list.Items {
		a.out.Events = append(a.out.Events, eventOf(e))
	}
	slices.SortStableFunc(a.out.Events, func(x, y why.Event) int { return x.At.Compare(y.At) })
	a.out.Events = a.out.Events[max(0, len(a.out.Events)-eventsMost):]
}

// eventOf says what an Event is about. Its times and its count are in other fields of Events that client-go repeats.
func eventOf(e corev1.Event) why.Event {
	out := why.Event{At: e.CreationTimestamp.Time, Type: e.Type, Reason: e.Reason, Message: e.Message, Count: max(1, int(e.Count))}
	if at := e.EventTime.Time; !at.IsZero() {
		out.At = at
	}
	if at := e.LastTimestamp.Time; !at.IsZero() {
		out.At = at
	}
	if s := e.Series; s != nil {
		out.At, out.Count = s.LastObservedTime.Time, int(s.Count)
	}
	return out
}

// unread notes what could not be read, with the right that is missing.
func (a *alone) unread(what, verb string, of schema.GroupResource, namespace string, err error) {
	reason := err.Error()
	if apierrors.IsForbidden(err) {
		reason = strings.TrimSuffix("you may not "+verb+" "+of.String()+" in namespace "+namespace, " in namespace ")
	}
	a.out.Unread = append(a.out.Unread, what+": "+reason)
}
