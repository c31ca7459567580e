// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package policy evaluates admission policies, and the match conditions of webhooks, as an API server does.
//
// It works on values: a policy says whether it sees a [Call], in which version of the objects, and which parameters each of its bindings
// needs. The caller finds these, and then evaluates the policy. The expressions are compiled and run by the API server's own code.
package policy

import (
	"cmp"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/cel/environment"
)

// rules are the parts that policies of both kinds have.
type rules struct {
	// Name is the name of the policy.
	Name string
	// ParamKind is the kind of its parameters; nil if it has none.
	ParamKind *admissionv1.ParamKind

	constraints *admissionv1.MatchResources
	conditions  *Conditions
	failure     admissionv1.FailurePolicyType
	compiler    *plugincel.CompositedCompiler
}

// Validating is a ValidatingAdmissionPolicy. It is safe for use by several goroutines.
type Validating struct {
	rules
	validations, messages, annotations plugincel.ConditionEvaluator
}

// Mutating is a MutatingAdmissionPolicy. It is safe for use by several goroutines.
type Mutating struct {
	rules
	mutations []patch.Patcher
	// Reinvoked says that it is invoked again when others may have changed the object after it.
	Reinvoked bool
}

// Binding is a binding of a policy of either kind.
type Binding struct {
	Name, Policy string
	// Param says which objects are parameters; nil means none.
	Param *admissionv1.ParamRef

	resources *admissionv1.MatchResources
	actions   []admissionv1.ValidationAction
}

// NewValidating compiles a policy. Expressions that do not compile fail when they are evaluated, as its failurePolicy says.
func NewValidating(p *admissionv1.ValidatingAdmissionPolicy) *Validating {
	compiler := newCompiler()
	s := p.Spec
	base := rules{Name: p.Name, ParamKind: s.ParamKind, constraints: s.MatchConstraints, failure: failureOf(s.FailurePolicy), compiler: compiler}
	full := plugincel.OptionalVariableDeclarations{HasParams: s.ParamKind != nil, HasAuthorizer: true}
	base.store(s.Variables, full)
	base.conditions = newConditions(compiler, s.MatchConditions, base.failure, full)
	out := &Validating{rules: base}
	var validations, messages, annotations []plugincel.ExpressionAccessor
	for _, v := range s.Validations {
		validations = append(validations, &validation{v})
		if v.MessageExpression == "" {
			messages = append(messages, nil)
		} else {
			messages = append(messages, &message{v.MessageExpression})
		}
	}
	for _, a := range s.AuditAnnotations {
		annotations = append(annotations, &annotation{a})
	}
	out.validations = compiler.CompileCondition(validations, full, environment.StoredExpressions)
	out.annotations = compiler.CompileCondition(annotations, full, environment.StoredExpressions)
	out.messages = compiler.CompileCondition(messages, plugincel.OptionalVariableDeclarations{HasParams: s.ParamKind != nil}, environment.StoredExpressions)
	return out
}

// NewMutating is [NewValidating] for a policy that changes objects.
func NewMutating(p *admissionv1.MutatingAdmissionPolicy) *Mutating {
	compiler := newCompiler()
	s := p.Spec
	base := rules{Name: p.Name, ParamKind: s.ParamKind, constraints: s.MatchConstraints, failure: failureOf(s.FailurePolicy), compiler: compiler}
	full := plugincel.OptionalVariableDeclarations{HasParams: s.ParamKind != nil, HasAuthorizer: true}
	base.store(s.Variables, full)
	base.conditions = newConditions(compiler, s.MatchConditions, base.failure, full)
	out := &Mutating{rules: base, Reinvoked: s.ReinvocationPolicy == admissionv1.IfNeededReinvocationPolicy}
	full.HasPatchTypes = true
	for _, m := range s.Mutations {
		switch {
		case m.PatchType == admissionv1.PatchTypeJSONPatch && m.JSONPatch != nil:
			expression := &patch.JSONPatchCondition{Expression: m.JSONPatch.Expression}
			out.mutations = append(out.mutations, patch.NewJSONPatcher(compiler.CompileMutatingEvaluator(expression, full, environment.StoredExpressions)))
		case m.PatchType == admissionv1.PatchTypeApplyConfiguration && m.ApplyConfiguration != nil:
			expression := &patch.ApplyConfigurationCondition{Expression: m.ApplyConfiguration.Expression}
			out.mutations = append(out.mutations, patch.NewApplyConfigurationPatcher(compiler.CompileMutatingEvaluator(expression, full, environment.StoredExpressions)))
		}
	}
	return out
}

// NewValidatingBinding returns the binding of a policy that validates objects.
func NewValidatingBinding(b *admissionv1.ValidatingAdmissionPolicyBinding) *Binding {
	return &Binding{Name: b.Name, Policy: b.Spec.PolicyName, Param: b.Spec.ParamRef, resources: b.Spec.MatchResources, actions: b.Spec.ValidationActions}
}

// NewMutatingBinding returns the binding of a policy that changes objects.
func NewMutatingBinding(b *admissionv1.MutatingAdmissionPolicyBinding) *Binding {
	return &Binding{Name: b.Name, Policy: b.Spec.PolicyName, Param: b.Spec.ParamRef, resources: b.Spec.MatchResources}
}

// newCompiler returns a compiler for one policy: it knows the policy's variables.
func newCompiler() *plugincel.CompositedCompiler {
	out, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		panic("policy: " + err.Error()) // not reached: the environment is the API server's own
	}
	return out
}

// store compiles variables. An expression may use the variables before its own.
func (r *rules) store(variables []admissionv1.Variable, declared plugincel.OptionalVariableDeclarations) {
	for _, v := range variables {
		r.compiler.CompileAndStoreVariable(&variable{v}, declared, environment.StoredExpressions)
	}
}

// failureOf returns a failure policy, which is Fail if it is not set.
func failureOf(p *admissionv1.FailurePolicyType) admissionv1.FailurePolicyType {
	if p == nil {
		return admissionv1.Fail
	}
	return cmp.Or(*p, admissionv1.Fail)
}

// fails reports whether an error of the policy refuses a request.
func (r *rules) fails() bool { return r.failure != admissionv1.Ignore }
