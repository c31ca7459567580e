// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"sync"

	celtypes "github.com/google/cel-go/common/types"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Conditions are the match conditions of a policy or a webhook. They are safe for use by several goroutines. Nil conditions hold.
type Conditions struct {
	compiled plugincel.ConditionEvaluator
	failure  admissionv1.FailurePolicyType
}

// plain compiles expressions that use no variables, and plainCompiler only looks at them.
var (
	plain = sync.OnceValue(func() plugincel.ConditionCompiler {
		return plugincel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	})
	plainCompiler = sync.OnceValue(func() plugincel.Compiler {
		return plugincel.NewCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	})
)

// NewConditions compiles the match conditions of a webhook. It returns nil if there are none.
func NewConditions(conditions []admissionv1.MatchCondition, failure *admissionv1.FailurePolicyType) *Conditions {
	if len(conditions) == 0 {
		return nil
	}
	return newConditions(plain(), conditions, failureOf(failure), plugincel.OptionalVariableDeclarations{HasAuthorizer: true})
}

func newConditions(
	with plugincel.ConditionCompiler, conditions []admissionv1.MatchCondition, failure admissionv1.FailurePolicyType, declared plugincel.OptionalVariableDeclarations,
) *Conditions {
	if len(conditions) == 0 {
		return nil
	}
	var expressions []plugincel.ExpressionAccessor
	for _, c := range conditions {
		expressions = append(expressions, &condition{c})
	}
	return &Conditions{with.CompileCondition(expressions, declared, environment.StoredExpressions), failure}
}

// Hold reports whether the conditions of a webhook hold for a call. An error refuses the request: the conditions have failed, and so
// does the webhook then.
func (c *Conditions) Hold(ctx context.Context, call *Call, in Version) (bool, error) {
	if c == nil {
		return true, nil
	}
	return c.hold(ctx, call, call.versioned(in), nil)
}

// hold is [Conditions.Hold] with a parameter, which may be nil. One condition that is false counts more than the errors of others.
func (c *Conditions) hold(ctx context.Context, call *Call, in *admission.VersionedAttributes, param runtime.Object) (bool, error) {
	if c == nil {
		return true, nil
	}
	request := plugincel.CreateAdmissionRequest(in.Attributes, metav1.GroupVersionResource(in.GetResource()), metav1.GroupVersionKind(in.VersionedKind))
	results, _, err := c.compiled.ForInput(ctx, in, request, call.bindings(param), nil, celconfig.RuntimeCELCostBudgetMatchConditions)
	var errs []error
	if err != nil {
		errs = append(errs, err)
	}
	for _, r := range results {
		if r.Error != nil {
			errs = append(errs, r.Error)
		}
		if r.EvalResult == celtypes.False {
			return false, nil
		}
	}
	switch {
	case len(errs) == 0:
		return true, nil
	case c.failure == admissionv1.Ignore:
		return false, nil
	case err != nil:
		return false, err
	}
	return false, utilerrors.NewAggregate(errs)
}
