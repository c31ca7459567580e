// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/policy"
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

// refusals returns the objects of the twin that rules of an operator would refuse if they were written as they are. Objects that the
// same rule of another version of the operator refuses, too, do not count.
func (t *twin) refusals(op, against *dsl.Operator) (out []Refusal) {
	known := map[Refusal]bool{}
	if against != nil {
		for _, one := range t.refusals(against, nil) {
			one.Message = ""
			known[one] = true
		}
	}
	for _, r := range op.Resources() {
		for _, h := range r.Admissions() {
			if a := h.Admission; a.Mutates || a.Action != dsl.ActionDeny || len(a.Subresources) > 0 || !slices.Contains(a.Operations, admissionv1.Update) {
				continue
			}
			for _, o := range t.listed(op, r) {
				one := Refusal{Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), Rule: r.Name.Resource + "/" + h.ID}
				if message, is := refuses(op, r, h, o); is && !known[one] {
					one.Message = message
					out = append(out, one)
				}
			}
		}
	}
	return out
}

// listed returns the objects of a resource about whose updates its rules decide.
func (t *twin) listed(op *dsl.Operator, r *dsl.Resource) (out []*unstructured.Unstructured) {
	list := decoded(t.recorder.read(place{resource: r.Name.GVR().GroupResource()}))
	selector, labelFault := labels.Parse(r.LabelSelector)
	chosen, fieldFault := fields.ParseSelector(r.FieldSelector)
	spaces, spaceFault := metav1.LabelSelectorAsSelector(policy.Namespaces(op, t.namespace, r))
	if list == nil || !list.IsList() || errors.Join(labelFault, fieldFault, spaceFault) != nil {
		return nil
	}
	_ = list.EachListItem(func(item runtime.Object) error { // the function returns no error
		o, is := item.(*unstructured.Unstructured)
		if is && o.GetKind() == "" { // as in lists of kinds that are built in
			o.SetAPIVersion(list.GetAPIVersion())
			o.SetKind(strings.TrimSuffix(list.GetKind(), "List"))
		}
		if is && o.GetDeletionTimestamp() == nil && selector.Matches(labels.Set(o.GetLabels())) && chosen.Matches(selectedFields(o, chosen)) && t.inScope(op, o, spaces) {
			out = append(out, o)
		}
		return nil
	})
	return out
}

// selectedFields returns the fields of an object that a selector asks for.
func selectedFields(o *unstructured.Unstructured, selector fields.Selector) fields.Set {
	out := fields.Set{}
	for _, r := range selector.Requirements() {
		if value, found, _ := unstructured.NestedFieldNoCopy(o.Object, strings.Split(r.Field, ".")...); found {
			out[r.Field] = fmt.Sprint(value)
		}
	}
	return out
}

// inScope reports whether an object is in a namespace that the selector selects and the scope of an operator names.
func (t *twin) inScope(op *dsl.Operator, o *unstructured.Unstructured, spaces labels.Selector) bool {
	namespace := o.GetNamespace()
	if o.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Namespace") {
		namespace = o.GetName() // selectors of namespaces select it by its own labels
	}
	if namespace == "" {
		return true
	}
	known := labels.Set{corev1.LabelMetadataName: namespace}
	if space := decoded(t.recorder.read(place{schema.GroupResource{Resource: "namespaces"}, "", namespace})); space != nil {
		maps.Copy(known, space.GetLabels())
	}
	names, named := len(op.Scope.Namespaces) == 0, false
	for _, pattern := range op.Scope.Namespaces {
		glob, excluded := strings.CutPrefix(pattern, "!")
		matches, _ := path.Match(glob, namespace) // the operator was validated
		if excluded && matches {
			return false
		}
		names, named = names || !excluded && matches, named || !excluded
	}
	return (names || !named) && spaces.Matches(known)
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
