// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"github.com/handwerk-dev/handwerk/sandbox/server/admission"
	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func resourceQuotas() schema.GroupResource { return schema.GroupResource{Resource: "resourcequotas"} }

// meter keeps the statuses of the ResourceQuotas of a namespace after a change in it, as the controller of a real cluster does.
func (s *Server) meter(t *table, c store.Change) {
	if s.garbage == nil || s.chain == nil || c.Row.Namespace == "" {
		return
	}
	for _, row := range s.tables[resourceQuotas()].objects.In(c.Row.Namespace) {
		if c.What != store.Modified || t.name() == resourceQuotas() || t.name() == pods() || t.name() == claims() || t.name() == services() {
			s.byItself(func() { s.measure(row.Tree()) })
		}
	}
}

func claims() schema.GroupResource { return schema.GroupResource{Resource: "persistentvolumeclaims"} }

func services() schema.GroupResource { return schema.GroupResource{Resource: "services"} }

// measure writes into a ResourceQuota how much of it is used, unless it says so.
func (s *Server) measure(o *unstructured.Unstructured) {
	quota := &corev1.ResourceQuota{}
	spec, status := map[string]any{"spec": o.Object["spec"]}, map[string]any{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(spec, quota) != nil || o.GetDeletionTimestamp() != nil {
		return
	}
	quota.Namespace = o.GetNamespace()
	used, err := admission.Used(storedObjects{s}, quota)
	if err != nil {
		return // not reached: stored objects have the form of their kinds
	}
	status["hard"], status["used"] = textOf(quota.Spec.Hard), textOf(used)
	next := o.DeepCopy()
	next.Object["status"] = status
	r := Request{
		Verb: "update", Resource: resourceQuotas().WithVersion("v1"), Subresource: "status",
		Namespace: o.GetNamespace(), Name: o.GetName(), agent: controllerManager,
	}
	_, _ = s.replace(s.tables[resourceQuotas()], r, o, next) // no change, no write
}

// textOf returns amounts as objects have them.
func textOf(amounts corev1.ResourceList) map[string]any {
	out := map[string]any{}
	for name, amount := range amounts {
		out[string(name)] = amount.String()
	}
	return out
}
