// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/handwerk-dev/handwerk/dsl/words"
)

// longestReview is the longest time that the API server waits for a webhook.
const longestReview = 30 * time.Second

// checkAdmissions reports faults of the admission handlers.
func (r *Resource) checkAdmissions(c check) {
	if len(r.admissions) > 0 && r.Name.Version == "" {
		c.fault("resource", "a resource with rules about requests needs a version: the one whose form they read")
	}
	if _, err := labels.Parse(r.NamespaceSelector); err != nil {
		c.fault("namespaceSelector", "want a label selector: %w", err)
	}
	if len(r.admissions) > 0 {
		c.comparisons("namespaceSelector", strings.Trim(r.op.Scope.NamespaceSelector+","+r.NamespaceSelector, ","))
		c.comparisons("selector", r.LabelSelector)
	}
	for i, h := range r.admissions {
		of := check{Place{Resource: r, Handler: h}, c.found}
		if fault := h.WrongID(); fault != "" || len(validation.IsDNS1123Subdomain(strings.ToLower(h.ID))) > 0 { // a policy has it in its name
			of.fault("id", "want letters and digits, with '-' or '.' between them, at most 63, found %q", h.ID)
		}
		same := func(other *Handler) bool { return strings.EqualFold(other.ID, h.ID) }
		if at := slices.IndexFunc(r.admissions[:i], same); at >= 0 {
			of.note(Fault{First: &Place{Resource: r, Handler: r.admissions[at], Field: "id"}}, "id", "the id is used twice")
		}
		for _, w := range h.invalid {
			of.fault(w.Field, "%w", w.Err)
		}
		h.checkOptions(of)
		if d := h.Timeout; d > 0 && (d%time.Second != 0 || d > longestReview) { // checkOptions reports others below zero
			of.fault("timeout", "is %v, and the API server waits for a webhook 1 to 30 whole seconds (want %v)", d, min((d+time.Second-1).Truncate(time.Second), longestReview))
		}
		h.Admission.check(of)
		r.checkSelected(of, h)
		r.checkServed(of, h.Admission)
	}
}

// comparisons reports the conditions of a selector that compare numbers: policies and webhook configurations cannot have them.
func (c check) comparisons(field, selector string) {
	all, _ := labels.ParseToRequirements(selector) // others report a wrong one
	for _, one := range all {
		if one.Operator() == selection.GreaterThan || one.Operator() == selection.LessThan {
			c.fault(field, "%s: rules about requests cannot compare numbers in labels (want =, !=, in, notin or the key alone)", one.String())
		}
	}
}

// ofOtherKinds are subresources whose requests have an object of another kind than the resource.
var ofOtherKinds = []string{"scale", "eviction", "binding", "token"}

// checkSelected reports filters that no request of an admission handler could match. The object of such a request has neither the labels
// nor the fields of the resource's object, so the handler would silently decide about nothing.
func (r *Resource) checkSelected(c check, h *Handler) {
	if r.LabelSelector == "" && r.FieldSelector == "" && len(h.Labels)+len(h.Annotations) == 0 {
		return
	}
	const fault = "a request %s has an object of another kind, so labels, annotations and fields never match; select by request.name or namespaces"
	if slices.Contains(h.Admission.Operations, admissionv1.Connect) {
		c.fault("operations", fault, "to connect")
	}
	for i, name := range h.Admission.Subresources {
		if slices.Contains(ofOtherKinds, name) {
			c.fault(fmt.Sprintf("subresources[%d]", i), fault, "for "+name)
		}
	}
}

// checkServed reports requests that nobody can send, because the resource's CRD does not serve them. The handler would silently decide
// about nothing.
func (r *Resource) checkServed(c check, a *Admission) {
	list, found, _ := unstructured.NestedFieldNoCopy(r.CRD, "spec", "versions")
	versions, isList := list.([]any)
	if !found || !isList {
		return
	}
	served := map[string]any{}
	for _, version := range versions {
		of, _ := version.(map[string]any)
		subresources, _, _ := unstructured.NestedMap(of, "subresources")
		maps.Copy(served, subresources)
	}
	for i, name := range a.Subresources {
		if _, known := served[name]; !known && name != "*" {
			c.fault(fmt.Sprintf("subresources[%d]", i), "%s have no subresource %q (%s)", r.Name.Resource, name, words.Hint(name, slices.Sorted(maps.Keys(served))))
		}
	}
	if i := slices.Index(a.Operations, admissionv1.Connect); i >= 0 {
		c.fault(fmt.Sprintf("operations[%d]", i), "nobody connects to %s: their CRD has no such subresource", r.Name.Resource)
	}
}

// check reports faults of an admission handler's own options.
func (a *Admission) check(c check) {
	for i, op := range a.Operations {
		switch {
		case !slices.Contains(AllOperations(), op):
			c.fault(fmt.Sprintf("operations[%d]", i), "unknown operation %q (want CREATE, UPDATE, DELETE or CONNECT)", op)
		case a.Mutates && op == admissionv1.Delete:
			c.fault(fmt.Sprintf("operations[%d]", i), "a deletion stores no object that could be changed")
		}
	}
	if a.FailurePolicy != registrationv1.Fail && a.FailurePolicy != registrationv1.Ignore {
		c.fault("failurePolicy", "unknown policy %q (want Fail or Ignore)", a.FailurePolicy)
	}
	c.choice("action", string(a.Action), a.Action)
	if a.Mutates && a.Action != ActionDeny {
		c.unwanted("action", "is only for rules that validate")
	}
}
