// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/operate/activity"
	"github.com/handwerk-dev/handwerk/engine/reconcile/admission"
)

// Refusal is an object that a new rule about requests would refuse at its next change.
type Refusal struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Rule is the resource and the id of the rule, as in websites/size, and Message the text for the client.
	Rule    string `json:"rule"`
	Message string `json:"message"`
}

// refusals returns the objects of the twin that rules of an operator would refuse if they were written as they are. Rules that another
// version of the operator has, too, do not count.
func (t *twin) refusals(op, against *dsl.Operator) (out []Refusal) {
	for _, r := range op.Resources() {
		for _, h := range r.Admissions() {
			if a := h.Admission; a.Mutates || a.Action != dsl.ActionDeny || len(a.Subresources) > 0 ||
				!slices.Contains(a.Operations, admissionv1.Update) || hasRule(against, r, h) {
				continue
			}
			for _, o := range t.listed(r) {
				if message, is := refuses(op, r, h, o); is {
					out = append(out, Refusal{o.GetKind(), o.GetNamespace(), o.GetName(), r.Name.Resource + "/" + h.ID, message})
				}
			}
		}
	}
	return out
}

// hasRule reports whether an operator has the same rule.
func hasRule(op *dsl.Operator, r *dsl.Resource, h *dsl.Handler) bool {
	if op == nil {
		return false
	}
	for _, other := range op.Resources() {
		for _, rule := range other.Admissions() {
			if other.Name.Objects() == r.Name.Objects() && rule.ID == h.ID && h.Admission.Policy != nil && reflect.DeepEqual(rule.Admission.Policy, h.Admission.Policy) {
				return true
			}
		}
	}
	return false
}

// listed returns the objects of a resource that its selector selects.
func (t *twin) listed(r *dsl.Resource) (out []*unstructured.Unstructured) {
	list := decoded(t.recorder.read(place{resource: r.Name.GVR().GroupResource()}))
	selector, err := labels.Parse(r.LabelSelector)
	if list == nil || !list.IsList() || err != nil {
		return nil
	}
	_ = list.EachListItem(func(o runtime.Object) error { // the function returns no error
		if one, is := o.(*unstructured.Unstructured); is && selector.Matches(labels.Set(one.GetLabels())) {
			out = append(out, one)
		}
		return nil
	})
	return out
}

// refuses reports whether a rule would refuse an update of an object that changes nothing, and the text for the client. Rules
// that read other objects or call functions in Go are left out.
func refuses(op *dsl.Operator, r *dsl.Resource, h *dsl.Handler, o *unstructured.Unstructured) (message string, is bool) {
	if h.Admission.Policy == nil || h.Admission.Policy.Params != nil {
		return "", false
	}
	text, err := json.Marshal(o.Object)
	if err != nil {
		return "", false
	}
	request := &admissionv1.AdmissionRequest{
		Operation: admissionv1.Update, Namespace: o.GetNamespace(), Name: o.GetName(), Object: runtime.RawExtension{Raw: text}, OldObject: runtime.RawExtension{Raw: text},
	}
	answer := admission.Decide(context.Background(), h, request, admission.Surroundings{
		Prefix: op.Prefix(), Secrets: r.Secrets(h), Log: logr.Discard(), Related: func(*unstructured.Unstructured) dsl.Related { return activity.Nothing{} },
	})
	if answer.Allowed {
		return "", false
	}
	return answer.Result.Message, true
}
