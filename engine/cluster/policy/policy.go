// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package policy makes the objects for the admission rules of an operator that the API server evaluates itself.
//
// It is pure.
package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/handwerk-dev/handwerk/dsl"
)

// OperatorLabel is the label of all admission objects of an operator. Its value is the operator's name, and its namespace
// behind a dot if the operator has one.
const OperatorLabel = "handwerk.dev/admission-of"

// Label returns the value of OperatorLabel for an operator in a namespace.
func Label(op *dsl.Operator, namespace string) string {
	return within(validation.LabelValueMaxLength, strings.TrimSuffix(op.Name+"."+namespace, "."))
}

// Labels returns the values of OperatorLabel for an operator in a namespace under all its names, the present one first.
func Labels(op *dsl.Operator, namespace string) []string {
	out := []string{Label(op, namespace)}
	for _, earlier := range op.Earlier() {
		out = append(out, Label(earlier, namespace))
	}
	return out
}

// within returns a text that has at most a number of characters: a longer one has a digest in the place of its end.
func within(most int, text string) string {
	if len(text) <= most {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	end := hex.EncodeToString(sum[:])[:10]
	return strings.TrimRight(text[:most-len(end)-1], "-.") + "-" + end
}

// Name returns the name of the objects of a rule. Operators in two namespaces have different ones.
func Name(op *dsl.Operator, namespace string, r *dsl.Resource, h *dsl.Handler) string {
	group := cmp.Or(r.Name.Group, "core")
	of := strings.ToLower(strings.Join([]string{h.ID, r.Name.Resource, group, Label(op, namespace)}, "."))
	domain := "." + cmp.Or(op.Domain, "handwerk.dev")
	return within(validation.DNS1123SubdomainMaxLength-len(domain), of) + domain
}

// Objects returns the policies of all rules that the API server evaluates, each with its binding. Namespace is that of the operator;
// rules about built-in kinds do not apply in it and in kube-system, unless the operator's scope names these: they cannot block the
// operator's own start.
func Objects(op *dsl.Operator, namespace string) (out []*unstructured.Unstructured) {
	for _, r := range op.Resources() {
		for _, h := range r.Admissions() {
			if h.Admission.Policy == nil {
				continue
			}
			m := maker{op, namespace, r, h}
			if h.Admission.Mutates {
				out = append(out, m.mutating()...)
			} else {
				out = append(out, m.validating()...)
			}
		}
	}
	return out
}

// maker makes the objects of one rule.
type maker struct {
	op        *dsl.Operator
	namespace string
	resource  *dsl.Resource
	handler   *dsl.Handler
}

func (m maker) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: Name(m.op, m.namespace, m.resource, m.handler), Labels: map[string]string{OperatorLabel: Label(m.op, m.namespace)}}
}

func (m maker) validating() []*unstructured.Unstructured {
	a := m.handler.Admission
	rule := registrationv1.Validation{Expression: a.Policy.Expression, Message: a.Policy.Message, MessageExpression: a.Policy.MessageExpression}
	if a.Policy.Reason != "" {
		rule.Reason = &a.Policy.Reason
	}
	policy := &registrationv1.ValidatingAdmissionPolicy{ObjectMeta: m.meta(), Spec: registrationv1.ValidatingAdmissionPolicySpec{
		ParamKind: m.paramKind(), MatchConstraints: Matches(m.resource, a), MatchConditions: m.conditions(),
		Variables: m.variables(), FailurePolicy: &a.FailurePolicy, Validations: []registrationv1.Validation{rule},
	}}
	action := map[dsl.AdmissionAction]registrationv1.ValidationAction{dsl.ActionDeny: registrationv1.Deny, dsl.ActionWarn: registrationv1.Warn, dsl.ActionAudit: registrationv1.Audit}[a.Action]
	binding := &registrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: m.meta(), Spec: registrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: policy.Name, ParamRef: m.paramRef(), ValidationActions: []registrationv1.ValidationAction{action},
		MatchResources: &registrationv1.MatchResources{NamespaceSelector: Namespaces(m.op, m.namespace, m.resource)},
	}}
	return []*unstructured.Unstructured{object("ValidatingAdmissionPolicy", policy), object("ValidatingAdmissionPolicyBinding", binding)}
}

func (m maker) mutating() []*unstructured.Unstructured {
	a := m.handler.Admission
	policy := &registrationv1.MutatingAdmissionPolicy{ObjectMeta: m.meta(), Spec: registrationv1.MutatingAdmissionPolicySpec{
		ParamKind: m.paramKind(), MatchConstraints: Matches(m.resource, a), MatchConditions: m.conditions(),
		Variables: m.variables(), FailurePolicy: &a.FailurePolicy, ReinvocationPolicy: registrationv1.IfNeededReinvocationPolicy,
		Mutations: []registrationv1.Mutation{{PatchType: registrationv1.PatchTypeJSONPatch, JSONPatch: &registrationv1.JSONPatch{Expression: a.Policy.Changes}}},
	}}
	binding := &registrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: m.meta(), Spec: registrationv1.MutatingAdmissionPolicyBindingSpec{
		PolicyName: policy.Name, ParamRef: m.paramRef(),
		MatchResources: &registrationv1.MatchResources{NamespaceSelector: Namespaces(m.op, m.namespace, m.resource)},
	}}
	return []*unstructured.Unstructured{object("MutatingAdmissionPolicy", policy), object("MutatingAdmissionPolicyBinding", binding)}
}

// object returns a typed object of admissionregistration.k8s.io/v1 as a tree, without fields that only the API server writes.
func object(kind string, typed any) *unstructured.Unstructured {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		panic(fmt.Sprintf("policy: encoding %s: %v", kind, err)) // the types are known
	}
	delete(tree, "status")
	o := &unstructured.Unstructured{Object: tree}
	o.SetGroupVersionKind(registrationv1.SchemeGroupVersion.WithKind(kind))
	unstructured.RemoveNestedField(tree, "metadata", "creationTimestamp")
	return o
}

// Matches returns the requests that an admission handler of a resource decides about: those of all versions of the
// resource.
func Matches(r *dsl.Resource, a *dsl.Admission) *registrationv1.MatchResources {
	resources := []string{r.Name.Resource}
	if len(a.Subresources) > 0 {
		resources = nil
		for _, name := range a.Subresources {
			resources = append(resources, r.Name.Resource+"/"+name)
		}
	}
	var operations []registrationv1.OperationType
	for _, one := range a.Operations {
		operations = append(operations, registrationv1.OperationType(one))
	}
	out := &registrationv1.MatchResources{MatchPolicy: new(registrationv1.Equivalent), ResourceRules: []registrationv1.NamedRuleWithOperations{{
		RuleWithOperations: registrationv1.RuleWithOperations{
			Operations: operations, Rule: registrationv1.Rule{APIGroups: []string{r.Name.Group}, APIVersions: []string{r.Name.Version}, Resources: resources},
		},
	}}}
	if r.LabelSelector != "" {
		out.ObjectSelector = labelSelector(r.LabelSelector)
	}
	return out
}

// Namespaces returns the selector of the namespaces in which admission handlers of a resource decide. Globs of the operator's scope
// are not in it: see [Conditions].
func Namespaces(op *dsl.Operator, namespace string, r *dsl.Resource) *metav1.LabelSelector {
	out := labelSelector(strings.Trim(op.Scope.NamespaceSelector+","+r.NamespaceSelector, ","))
	var names, not []string
	globs := false
	for _, pattern := range op.Scope.Namespaces {
		name, excluded := strings.CutPrefix(pattern, "!")
		switch {
		case strings.ContainsAny(name, `*?[\`):
			globs = globs || !excluded
		case excluded:
			not = append(not, name)
		default:
			names = append(names, name)
		}
	}
	if dsl.BuiltIn(r.Name.Group) { // what the operator and the cluster themselves need
		for _, name := range []string{"kube-system", namespace} {
			if name != "" && !slices.Contains(names, name) {
				not = append(not, name)
			}
		}
	}
	if len(names) > 0 && !globs {
		out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: names})
	}
	if slices.Sort(not); len(not) > 0 {
		out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: slices.Compact(not)})
	}
	return out
}

// labelSelector returns a selector in kubectl's form as the API has it. All its requirements hold, also two of one label:
// [metav1.ParseToLabelSelector] keeps only one of two values that a label is to have.
func labelSelector(text string) *metav1.LabelSelector {
	out := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	all, _ := labels.ParseToRequirements(text) // a wrong selector is a fault of the operator
	for _, one := range all {
		values, of := one.Values().List(), metav1.LabelSelectorRequirement{Key: one.Key()}
		switch one.Operator() {
		case selection.Equals, selection.DoubleEquals:
			if _, twice := out.MatchLabels[one.Key()]; !twice {
				out.MatchLabels[one.Key()] = values[0]
				continue
			}
			of.Operator, of.Values = metav1.LabelSelectorOpIn, values
		case selection.In:
			of.Operator, of.Values = metav1.LabelSelectorOpIn, values
		case selection.NotIn, selection.NotEquals:
			of.Operator, of.Values = metav1.LabelSelectorOpNotIn, values
		case selection.Exists:
			of.Operator = metav1.LabelSelectorOpExists
		case selection.DoesNotExist:
			of.Operator = metav1.LabelSelectorOpDoesNotExist
		}
		out.MatchExpressions = append(out.MatchExpressions, of)
	}
	return out
}

func (m maker) variables() (out []registrationv1.Variable) {
	for _, v := range m.handler.Admission.Policy.Variables {
		out = append(out, registrationv1.Variable{Name: v.Name, Expression: v.Expression})
	}
	return out
}

func (m maker) paramKind() *registrationv1.ParamKind {
	p := m.handler.Admission.Policy.Params
	if p == nil {
		return nil
	}
	return &registrationv1.ParamKind{APIVersion: p.APIVersion, Kind: p.Kind}
}

func (m maker) paramRef() *registrationv1.ParamRef {
	p := m.handler.Admission.Policy.Params
	if p == nil {
		return nil
	}
	missing := registrationv1.DenyAction
	if p.Optional {
		missing = registrationv1.AllowAction
	}
	return &registrationv1.ParamRef{Name: p.Name, Namespace: p.Namespace, ParameterNotFoundAction: &missing}
}
