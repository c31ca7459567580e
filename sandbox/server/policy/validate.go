// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	celtypes "github.com/google/cel-go/common/types"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// Verdict collects the results of policies for a call.
type Verdict struct {
	// Denials are in the order of the policies.
	Denials []Denial
	// Warnings are for the client.
	Warnings []string
	// Failures are the messages of failed validations whose binding has the action Audit.
	Failures []string
	// Annotations are audit annotations, by the name of the policy, a slash and the key.
	Annotations map[string][]string
}

// Denial is the reason of a policy to deny a call.
type Denial struct {
	policy, binding string
	reason          metav1.StatusReason
	text            string
}

// finding is the outcome of one validation that did not pass.
type finding struct {
	reason metav1.StatusReason
	text   string
}

// Misconfigured adds an error of a policy's or a binding's configuration. Binding is nil for one of the policy.
func (p *Validating) Misconfigured(v *Verdict, b *Binding, err error) {
	if !p.fails() {
		return
	}
	if b == nil {
		v.Denials = append(v.Denials, Denial{policy: p.Name, text: fmt.Sprintf("failed to configure policy: %v", err)})
		return
	}
	v.Denials = append(v.Denials, Denial{policy: p.Name, binding: b.Name, text: fmt.Sprintf("failed to configure binding: %v", err)})
}

// Validate evaluates a policy with a binding and a parameter, which may be nil, and adds the outcome. It reports whether the match
// conditions hold.
func (p *Validating) Validate(ctx context.Context, v *Verdict, c *Call, in Version, b *Binding, param runtime.Object) (applies bool) {
	attributes := c.versioned(in)
	holds, err := p.conditions.hold(ctx, c, attributes, param)
	switch {
	case err != nil && p.fails():
		b.act(v, p.Name, finding{text: err.Error()})
		return false
	case err != nil || !holds:
		return false
	}
	request := plugincel.CreateAdmissionRequest(c.attributes(), metav1.GroupVersionResource(in.Resource), metav1.GroupVersionKind(in.Kind))
	e := &evaluation{ctx: ctx, call: c, in: attributes, request: request, param: param}
	for _, f := range p.findings(e) {
		b.act(v, p.Name, f)
	}
	p.annotate(e, v, b)
	return true
}

// act applies the actions of a binding to a failed validation.
func (b *Binding) act(v *Verdict, policy string, f finding) {
	for _, action := range b.actions {
		switch action {
		case admissionv1.Deny:
			v.Denials = append(v.Denials, Denial{policy: policy, binding: b.Name, reason: f.reason, text: f.text})
		case admissionv1.Warn:
			v.Warnings = append(v.Warnings, fmt.Sprintf("Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s': %s", policy, b.Name, f.text))
		case admissionv1.Audit:
			v.Failures = append(v.Failures, f.text)
		}
	}
}

// findings returns the validations that a call does not pass. One that fails counts if the policy says so.
func (p *Validating) findings(e *evaluation) (out []finding) {
	failed := func(text string) {
		if p.fails() {
			out = append(out, finding{text: text})
		}
	}
	results, budget, err := e.run(p.validations, e.call.bindings(e.param), celconfig.RuntimeCELCostBudget)
	if err != nil {
		failed(err.Error())
		return out
	}
	messages, _, err := e.run(p.messages, plugincel.OptionalVariableBindings{VersionedParams: e.param}, budget)
	for i, r := range results {
		rule := r.ExpressionAccessor.(*validation)
		switch {
		case r.Error != nil:
			failed(r.Error.Error())
		case errors.Is(err, apiservercel.ErrInternal) || errors.Is(err, apiservercel.ErrOutOfBudget):
			failed(fmt.Sprintf("failed messageExpression: %s", err))
		case r.EvalResult != celtypes.True:
			out = append(out, finding{reason: reasonOf(rule), text: rule.text(messages, i)})
		}
	}
	return out
}

// reasonOf returns the reason of a validation, which is Invalid if it does not say.
func reasonOf(v *validation) metav1.StatusReason {
	if v.Reason == nil {
		return metav1.StatusReasonInvalid
	}
	return *v.Reason
}

// text returns why a validation did not pass: by its messageExpression, its message or its expression. A text of an expression that is
// long, empty or has several lines does not count.
func (v *validation) text(messages []plugincel.EvaluationResult, i int) string {
	if i < len(messages) && messages[i].Error == nil && messages[i].EvalResult != nil {
		text, _ := messages[i].EvalResult.Value().(string)
		text = strings.TrimSpace(text)
		if text != "" && len(text) <= celconfig.MaxEvaluatedMessageExpressionSizeBytes && !strings.Contains(text, "\n") {
			return text
		}
	}
	if text := strings.TrimSpace(v.Message); v.Message != "" && text != "" {
		return text
	}
	return "failed expression: " + strings.TrimSpace(v.Expression)
}

// annotate evaluates audit annotations. One that fails denies a call, whatever the actions of the binding are.
func (p *Validating) annotate(e *evaluation, v *Verdict, b *Binding) {
	results, _, err := e.run(p.annotations, plugincel.OptionalVariableBindings{VersionedParams: e.param}, celconfig.RuntimeCELCostBudget)
	if err != nil && p.fails() {
		b.act(v, p.Name, finding{text: err.Error()})
	}
	deny := func(text string) { v.Denials = append(v.Denials, Denial{policy: p.Name, binding: b.Name, text: text}) }
	for _, r := range results {
		rule := r.ExpressionAccessor.(*annotation)
		switch {
		case r.Error != nil && p.fails():
			deny(r.Error.Error())
		case r.Error != nil || r.EvalResult.Type() == celtypes.NullType:
		case r.EvalResult.Type() != celtypes.StringType:
			deny(fmt.Sprintf("valueExpression '%v' resulted in unsupported return type: %v. Return type must be either string or null.", rule.ValueExpression, r.EvalResult.Type()))
		default:
			v.publish(p.Name+"/"+rule.Key, strings.TrimSpace(r.EvalResult.Value().(string)))
		}
	}
}

// maxAnnotation is the size of an audit annotation; longer ones are cut.
const maxAnnotation = 10 * 1024

// publish adds the value of an audit annotation, unless it is empty.
func (v *Verdict) publish(key, value string) {
	value = value[:min(len(value), maxAnnotation)]
	if value == "" {
		return
	}
	if v.Annotations == nil {
		v.Annotations = map[string][]string{}
	}
	v.Annotations[key] = append(v.Annotations[key], value)
}

// Refusal returns the response to a call that policies deny, or nil. The first one is named.
func (v *Verdict) Refusal(c *Call) error {
	if len(v.Denials) == 0 {
		return nil
	}
	first := v.Denials[0]
	text := fmt.Sprintf("ValidatingAdmissionPolicy '%s' denied request: %s", first.policy, first.text)
	if first.binding != "" {
		text = fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", first.policy, first.binding, first.text)
	}
	var out *apierrors.StatusError
	if err := admission.NewForbidden(c.attributes(), errors.New(text)); !errors.As(err, &out) {
		return err
	}
	out.ErrStatus.Reason = first.reason
	if first.reason == "" {
		out.ErrStatus.Reason = metav1.StatusReasonInvalid
	}
	out.ErrStatus.Code = codeOf(out.ErrStatus.Reason)
	out.ErrStatus.Details.Causes = append(out.ErrStatus.Details.Causes, metav1.StatusCause{Message: text})
	return out
}

// codeOf returns the status code of a reason.
func codeOf(reason metav1.StatusReason) int32 {
	switch reason {
	case metav1.StatusReasonForbidden:
		return http.StatusForbidden
	case metav1.StatusReasonUnauthorized:
		return http.StatusUnauthorized
	case metav1.StatusReasonRequestEntityTooLarge:
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusUnprocessableEntity
}
