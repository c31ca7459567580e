// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/handwerk-dev/handwerk/sandbox/server/policy"
)

func fillPolicy(p *admissionv1.ValidatingAdmissionPolicy) {
	initial(&p.Spec.FailurePolicy, admissionv1.Fail)
	fillMatches(p.Spec.MatchConstraints)
}

func fillMutatingPolicy(p *admissionv1.MutatingAdmissionPolicy) {
	initial(&p.Spec.FailurePolicy, admissionv1.Fail)
	fillMatches(p.Spec.MatchConstraints)
}

func fillPolicyBinding(b *admissionv1.ValidatingAdmissionPolicyBinding) {
	fillMatches(b.Spec.MatchResources)
}

func fillMutatingBinding(b *admissionv1.MutatingAdmissionPolicyBinding) {
	fillMatches(b.Spec.MatchResources)
}

func checkPolicy(f *findings, next, _ *admissionv1.ValidatingAdmissionPolicy) {
	f.add(policy.CheckValidating(next))
}

func checkMutatingPolicy(f *findings, next, _ *admissionv1.MutatingAdmissionPolicy) {
	f.add(policy.CheckMutating(next))
}

func checkPolicyBinding(f *findings, next, _ *admissionv1.ValidatingAdmissionPolicyBinding) {
	f.add(policy.CheckValidatingBinding(next))
}

func checkMutatingBinding(f *findings, next, _ *admissionv1.MutatingAdmissionPolicyBinding) {
	f.add(policy.CheckMutatingBinding(next))
}
