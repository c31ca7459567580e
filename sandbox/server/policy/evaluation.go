// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
)

// evaluation is a policy at work on a call.
type evaluation struct {
	ctx     context.Context //nolint:containedctx // it ends with the call
	call    *Call
	in      *admission.VersionedAttributes
	request *admissionv1.AdmissionRequest
	param   runtime.Object
}

// run evaluates expressions within a budget, and returns the rest of it.
func (e *evaluation) run(expressions plugincel.ConditionEvaluator, with plugincel.OptionalVariableBindings, budget int64) ([]plugincel.EvaluationResult, int64, error) {
	return expressions.ForInput(e.ctx, e.in, e.request, with, plugincel.CreateNamespaceObject(e.call.Space), budget)
}
