// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/client-go/kubernetes/scheme"
)

// Failures are errors of policies that were to change an object. The zero value has none.
type Failures struct {
	reason metav1.StatusReason
	texts  []string
}

// Add adds an error of a policy, if the policy says that it counts. Binding may be nil. Configured says that it is an error of the
// configuration, not of an expression.
func (p *Mutating) Add(f *Failures, b *Binding, err error, configured bool) {
	if !p.fails() {
		return
	}
	reason := metav1.StatusReasonInvalid
	if configured {
		reason = metav1.StatusReasonForbidden
		what := "policy"
		if b != nil {
			what = "binding"
		}
		err = fmt.Errorf("failed to configure %s: %w", what, err)
	}
	text := fmt.Sprintf("policy %q denied request: %v", p.Name, err)
	if b != nil {
		text = fmt.Sprintf("policy '%s' with binding '%s' denied request: %v", p.Name, b.Name, err)
	}
	if len(f.texts) == 0 {
		f.reason = reason
	}
	f.texts = append(f.texts, text)
}

// Refusal returns the response to a call for which policies failed, or nil.
func (f *Failures) Refusal(c *Call) error {
	if len(f.texts) == 0 {
		return nil
	}
	var out *apierrors.StatusError
	if err := admission.NewForbidden(c.attributes(), errors.New("admission request denied by policy")); !errors.As(err, &out) {
		return err
	}
	out.ErrStatus.Message, out.ErrStatus.Reason = f.texts[0], f.reason
	for _, text := range f.texts {
		out.ErrStatus.Details.Causes = append(out.ErrStatus.Details.Causes, metav1.StatusCause{Message: text})
	}
	return out
}

// Applies reports whether the match conditions of a policy hold for a call.
func (p *Mutating) Applies(ctx context.Context, c *Call, in Version, param runtime.Object) (bool, error) {
	return p.conditions.hold(ctx, c, c.versioned(in), param)
}

// Len is the number of the policy's mutations.
func (p *Mutating) Len() int { return len(p.mutations) }

// Mutate does one mutation, and returns the object as it is then. A [apierrors.StatusError] is the response to the call.
func (p *Mutating) Mutate(ctx context.Context, c *Call, in Version, param runtime.Object, i int, types managedfields.TypeConverter) (map[string]any, error) {
	out, err := p.mutations[i].Patch(p.compiler.CreateContext(ctx), patch.Request{
		MatchedResource: in.Resource, VersionedAttributes: c.versioned(in), ObjectInterfaces: admission.NewObjectInterfacesFromScheme(scheme.Scheme),
		OptionalVariables: c.bindings(param), Namespace: c.Space, TypeConverter: types,
	}, celconfig.RuntimeCELCostBudget)
	if err != nil {
		return nil, err
	}
	if u, is := out.(*unstructured.Unstructured); is {
		return u.Object, nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(out)
}
