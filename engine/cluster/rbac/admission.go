// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
)

// admission adds the rights to keep policies and webhook configurations, and the certificate of webhooks.
func (c *collector) admission(namespace string) {
	for _, r := range c.op.Resources() {
		if r.Converts() && !c.op.Settings.AdmissionByOthers {
			c.add(about{Name: dsl.ResourceName{Resource: "customresourcedefinitions", Group: "apiextensions.k8s.io"}, names: []string{r.CRDName()}, everywhere: true},
				because("has the API server call its conversions"), "get", "list", "watch", "patch")
		}
		for _, h := range r.Admissions() {
			c.params(r, h)
			for _, need := range h.Needs {
				c.need(r, "rule "+handlerName(r, h), h, need)
			}
		}
	}
	if c.op.Settings.AdmissionByOthers {
		return
	}
	kept := c.keptForRequests()
	for _, resource := range allForRequests {
		about := about{Name: dsl.ResourceName{Resource: resource, Group: "admissionregistration.k8s.io"}, everywhere: true}
		if slices.Contains(kept, resource) {
			c.add(about, because("keeps its rules about requests"), "get", "list", "watch", "create", "patch", "delete")
		} else if len(kept) > 0 {
			c.add(about, because("deletes what earlier rules about requests have left"), "list", "delete")
		}
	}
	if c.op.NeedsWebhooks() && namespace != "" {
		secret := about{Name: dsl.ResourceName{Resource: "secrets"}, names: []string{c.op.WebhookSecret()}, namespace: namespace}
		c.add(secret, because("keeps the certificate of its webhooks"), "get", "list", "watch", "update")
		secret.names = nil
		c.add(secret, because("makes the certificate of its webhooks"), "create")
	}
}

// allForRequests are the resources of the objects by which the API server may know rules about requests. A rule that changes may need
// another one than before.
var allForRequests = []string{
	"mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations",
	"validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations",
}

// keptForRequests returns the resources of the objects by which the API server knows the rules about requests, sorted.
func (c *collector) keptForRequests() []string {
	kept := map[string]bool{}
	for _, r := range c.op.Resources() {
		for _, h := range r.Admissions() {
			verb := "validating"
			if h.Admission.Mutates {
				verb = "mutating"
			}
			if h.Admission.Hooked() {
				kept[verb+"webhookconfigurations"] = true
			} else {
				kept[verb+"admissionpolicies"], kept[verb+"admissionpolicybindings"] = true, true
			}
		}
	}
	return slices.Sorted(maps.Keys(kept))
}

// params adds the right to read the objects that a policy has as params: the API server wants it of those who write such a policy
// (https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/#parameter-resources).
func (c *collector) params(r *dsl.Resource, h *dsl.Handler) {
	if c.op.Settings.AdmissionByOthers || h.Admission.Hooked() || h.Admission.Policy.Params == nil {
		return
	}
	p := h.Admission.Policy.Params
	version, err := schema.ParseGroupVersion(p.APIVersion)
	if err != nil {
		return // the API server refuses the policy
	}
	kind := version.WithKind(p.Kind)
	c.add(about{Kind: kind, everywhere: true}, Reason{Who: "rule " + handlerName(r, h), Why: cmp.Or(p.Name, "an object") + " has its params"}, "get")
}
