// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
	"github.com/handwerk-dev/handwerk/engine/cluster/policy"
)

// requests returns the policies, bindings and webhook configurations of the operator, under all its names. Webhooks come first: once nobody
// answers, they would refuse requests. An account without the right to list a kind of them cannot have made any. Elsewhere are the namespaces of
// other deployments of the operator that have such objects.
func (c *Cleaner) requests(ctx context.Context) (out []Found, elsewhere []string, err error) {
	own, prefix := policy.Labels(c.op, c.set.Namespace), c.op.Name+"."
	for _, r := range []struct{ kind, resource string }{
		{"MutatingWebhookConfiguration", "mutatingwebhookconfigurations"}, {"ValidatingWebhookConfiguration", "validatingwebhookconfigurations"},
		{"MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings"}, {"ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"},
		{"MutatingAdmissionPolicy", "mutatingadmissionpolicies"}, {"ValidatingAdmissionPolicy", "validatingadmissionpolicies"},
	} {
		gvr := registrationv1.SchemeGroupVersion.WithResource(r.resource)
		list, failed := c.metadata.Resource(gvr).List(ctx, metav1.ListOptions{LabelSelector: policy.OperatorLabel})
		if apierrors.IsForbidden(failed) || apierrors.IsNotFound(failed) {
			continue
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("listing %s: %w", r.resource, failed))
			continue
		}
		for _, o := range list.Items {
			label := o.Labels[policy.OperatorLabel]
			if slices.Contains(own, label) {
				out = append(out, Found{Resource: discovery.Resource{GVR: gvr, Kind: r.kind}, Name: o.Name, UID: o.UID, Own: true})
				continue
			}
			namespace, isNamesake := strings.CutPrefix(label, prefix)
			if isNamesake && !strings.Contains(namespace, ".") && !slices.Contains(elsewhere, namespace) { // a name may have dots, a namespace has none
				elsewhere = append(elsewhere, namespace)
			}
		}
	}
	return out, elsewhere, err
}
