// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/handwerk-dev/handwerk/sandbox/server/policy"
)

const (
	patience = 10  // seconds that the API server waits for a webhook
	https    = 443 // the port of a webhook's Service
)

// webhook is what webhooks of both kinds have.
type webhook struct {
	name     string
	client   *admissionv1.WebhookClientConfig
	rules    []admissionv1.RuleWithOperations
	failure  **admissionv1.FailurePolicyType
	match    **admissionv1.MatchPolicyType
	effects  *admissionv1.SideEffectClass
	timeout  **int32
	space    **metav1.LabelSelector
	object   **metav1.LabelSelector
	versions []string
	// conditions are the match conditions.
	conditions []admissionv1.MatchCondition
}

func validating(c *admissionv1.ValidatingWebhookConfiguration) (out []webhook) {
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		out = append(out, webhook{w.Name, &w.ClientConfig, w.Rules, &w.FailurePolicy, &w.MatchPolicy, w.SideEffects, &w.TimeoutSeconds,
			&w.NamespaceSelector, &w.ObjectSelector, w.AdmissionReviewVersions, w.MatchConditions})
	}
	return out
}

func mutating(c *admissionv1.MutatingWebhookConfiguration) (out []webhook) {
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		out = append(out, webhook{w.Name, &w.ClientConfig, w.Rules, &w.FailurePolicy, &w.MatchPolicy, w.SideEffects, &w.TimeoutSeconds,
			&w.NamespaceSelector, &w.ObjectSelector, w.AdmissionReviewVersions, w.MatchConditions})
	}
	return out
}

func fillValidating(c *admissionv1.ValidatingWebhookConfiguration) { fillWebhooks(validating(c)) }

func fillMutating(c *admissionv1.MutatingWebhookConfiguration) {
	fillWebhooks(mutating(c))
	for i := range c.Webhooks {
		initial(&c.Webhooks[i].ReinvocationPolicy, admissionv1.NeverReinvocationPolicy)
	}
}

func fillWebhooks(hooks []webhook) {
	for _, w := range hooks {
		initial(w.failure, admissionv1.Fail)
		fillMatch(w.match, w.space, w.object)
		initial(w.timeout, patience)
		if w.client.Service != nil {
			initial(&w.client.Service.Port, https)
		}
		for i := range w.rules {
			initial(&w.rules[i].Scope, admissionv1.AllScopes)
		}
	}
}

// fillMatch sets which objects a webhook or a policy is for.
func fillMatch(match **admissionv1.MatchPolicyType, space, object **metav1.LabelSelector) {
	initial(match, admissionv1.Equivalent)
	initial(space, metav1.LabelSelector{})
	initial(object, metav1.LabelSelector{})
}

// fillMatches is fillMatch for the resources of a policy, which may be nil.
func fillMatches(m *admissionv1.MatchResources) {
	if m == nil {
		return
	}
	fillMatch(&m.MatchPolicy, &m.NamespaceSelector, &m.ObjectSelector)
	for _, rules := range [][]admissionv1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range rules {
			initial(&rules[i].Scope, admissionv1.AllScopes)
		}
	}
}

func checkValidating(f *findings, next, _ *admissionv1.ValidatingWebhookConfiguration) {
	checkWebhooks(f, validating(next))
}

func checkMutating(f *findings, next, _ *admissionv1.MutatingWebhookConfiguration) {
	checkWebhooks(f, mutating(next))
}

func checkWebhooks(f *findings, hooks []webhook) {
	names := map[string]bool{}
	for i, w := range hooks {
		at := field.NewPath("webhooks").Index(i)
		f.add(utilvalidation.IsFullyQualifiedName(at.Child("name"), w.name))
		for j, r := range w.rules {
			if len(r.Operations) == 0 {
				f.required(at.Child("rules").Index(j).Child("operations"), "")
			}
		}
		supportedIf(f, at.Child("failurePolicy"), *w.failure, admissionv1.Fail, admissionv1.Ignore)
		supportedIf(f, at.Child("matchPolicy"), *w.match, admissionv1.Equivalent, admissionv1.Exact)
		if w.effects == nil {
			f.required(at.Child("sideEffects"), "must specify one of None, NoneOnDryRun")
		}
		supportedIf(f, at.Child("sideEffects"), w.effects, admissionv1.SideEffectClassNone, admissionv1.SideEffectClassNoneOnDryRun)
		if seconds := **w.timeout; seconds > 30 || seconds < 1 {
			f.invalid(at.Child("timeoutSeconds"), seconds, "the timeout value must be between 1 and 30 seconds")
		}
		if (w.client.URL == nil) == (w.client.Service == nil) {
			f.required(at.Child("clientConfig"), "exactly one of url or service is required")
		}
		f.add(policy.CheckConditions(at.Child("matchConditions"), w.conditions))
		if len(w.versions) == 0 {
			f.required(at.Child("admissionReviewVersions"), fmt.Sprintf("must specify one of %v", "v1, v1beta1"))
		}
		if names[w.name] {
			f.duplicate(at.Child("name"), w.name)
		}
		names[w.name] = true
	}
}
