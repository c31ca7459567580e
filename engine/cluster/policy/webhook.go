// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"time"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// DefaultTimeout is how long the API server waits for a webhook whose handler has no timeout.
const DefaultTimeout = 10 * time.Second

// Path returns the path under which the operator answers for an admission handler.
func Path(r *dsl.Resource, h *dsl.Handler) string {
	return "/admission/" + r.Name.Resource + "." + cmp.Or(r.Name.Group, "core") + "/" + h.ID
}

// Hooked returns the admission handlers that only the operator can run, with their resources.
func Hooked(op *dsl.Operator) (out map[*dsl.Handler]*dsl.Resource) {
	out = map[*dsl.Handler]*dsl.Resource{}
	for _, r := range op.Resources() {
		for _, h := range r.Admissions() {
			if h.Admission.Hooked() {
				out[h] = r
			}
		}
	}
	return out
}

// Client says how the API server reaches the operator: by the URL, or, if that is empty, by a Service in its namespace, on port 443.
type Client struct {
	URL, Namespace, Service string
	// Authorities are the CAs of the operator's certificate, in PEM.
	Authorities []byte
}

// config returns the configuration for a path.
func (c Client) config(path string) registrationv1.WebhookClientConfig {
	if c.URL != "" {
		return registrationv1.WebhookClientConfig{CABundle: c.Authorities, URL: new(c.URL + path)}
	}
	service := &registrationv1.ServiceReference{Namespace: c.Namespace, Name: c.Service, Path: &path, Port: new(int32(443))}
	return registrationv1.WebhookClientConfig{CABundle: c.Authorities, Service: service}
}

// Webhooks returns the configurations with the webhooks of all admission handlers that need one: one for those that change
// objects, and one for the others. Namespace is that of the operator; see [Objects].
func Webhooks(op *dsl.Operator, namespace string, client Client) (out []*unstructured.Unstructured) {
	var mutating []registrationv1.MutatingWebhook
	var validating []registrationv1.ValidatingWebhook
	for _, r := range op.Resources() {
		for _, h := range r.Admissions() {
			if !h.Admission.Hooked() {
				continue
			}
			hook := validatingHook(maker{op, namespace, r, h}, client)
			if h.Admission.Mutates {
				mutating = append(mutating, mutatingHook(hook))
			} else {
				validating = append(validating, hook)
			}
		}
	}
	meta := metav1.ObjectMeta{Name: Label(op, namespace) + "." + cmp.Or(op.Domain, "handwerk.dev"), Labels: map[string]string{OperatorLabel: Label(op, namespace)}}
	if len(mutating) > 0 {
		out = append(out, object("MutatingWebhookConfiguration", &registrationv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: mutating}))
	}
	if len(validating) > 0 {
		out = append(out, object("ValidatingWebhookConfiguration", &registrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: validating}))
	}
	return out
}

func validatingHook(m maker, client Client) registrationv1.ValidatingWebhook {
	a := m.handler.Admission
	timeout := cmp.Or(m.handler.Timeout, DefaultTimeout) // whole seconds, or it is a fault of the operator
	requests := Matches(m.resource, a)
	var rules []registrationv1.RuleWithOperations
	for _, one := range requests.ResourceRules {
		rules = append(rules, one.RuleWithOperations)
	}
	return registrationv1.ValidatingWebhook{
		Name: Name(m.op, m.namespace, m.resource, m.handler), ClientConfig: client.config(Path(m.resource, m.handler)), Rules: rules,
		FailurePolicy: &a.FailurePolicy, MatchPolicy: requests.MatchPolicy, NamespaceSelector: Namespaces(m.op, m.namespace, m.resource),
		ObjectSelector: requests.ObjectSelector, SideEffects: new(registrationv1.SideEffectClassNone),
		TimeoutSeconds: new(int32(timeout / time.Second)), AdmissionReviewVersions: []string{"v1"},
		MatchConditions: Named(Conditions(m.op, m.resource, a)),
	}
}

func mutatingHook(h registrationv1.ValidatingWebhook) registrationv1.MutatingWebhook {
	return registrationv1.MutatingWebhook{
		Name: h.Name, ClientConfig: h.ClientConfig, Rules: h.Rules, FailurePolicy: h.FailurePolicy, MatchPolicy: h.MatchPolicy,
		NamespaceSelector: h.NamespaceSelector, ObjectSelector: h.ObjectSelector, SideEffects: h.SideEffects, TimeoutSeconds: h.TimeoutSeconds,
		AdmissionReviewVersions: h.AdmissionReviewVersions, MatchConditions: h.MatchConditions, ReinvocationPolicy: new(registrationv1.IfNeededReinvocationPolicy),
	}
}
