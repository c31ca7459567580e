// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/warning"
)

// addWarnings adds what is doubtful about a valid object to the response; old is nil for a new object.
func (r rule) addWarnings(ctx context.Context, next, old any) {
	if o, err := meta.Accessor(next); err == nil && old == nil && r.names != "" {
		if wrong := utilvalidation.IsDNS1123Label(o.GetName()); len(wrong) > 0 {
			warning.AddWarning(ctx, "", fmt.Sprintf("metadata.name: this is used in %s, which can result in surprising behavior; a DNS label is recommended: %v", r.names, wrong))
		}
	}
	if r.warn == nil {
		return
	}
	for _, text := range r.warn(next, old) {
		warning.AddWarning(ctx, "", text)
	}
}

// warnService returns the fields of a Service that have no effect, or may have none.
func warnService(next, _ *corev1.Service) (out []string) {
	s := &next.Spec
	external := s.Type == corev1.ServiceTypeExternalName
	headless := s.ClusterIP == corev1.ClusterIPNone && !external
	for _, each := range []struct {
		applies bool
		text    string
	}{
		{headless && s.LoadBalancerIP != "", "spec.loadBalancerIP is ignored for headless services"},
		{headless && len(s.ExternalIPs) > 0, "spec.externalIPs is ignored for headless services"},
		{headless && s.SessionAffinity != corev1.ServiceAffinityNone, "spec.SessionAffinity is ignored for headless services"},
		{!headless && !external && len(s.ExternalIPs) > 0, "spec.externalIPs is deprecated and may no longer be implemented in some clusters"},
		{external && len(s.ExternalIPs) > 0, `spec.externalIPs is ignored when spec.type is "ExternalName"`},
		{!external && s.ExternalName != "", `spec.externalName is ignored when spec.type is not "ExternalName"`},
		{s.TrafficDistribution != nil && *s.TrafficDistribution == corev1.ServiceTrafficDistributionPreferClose,
			`spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"`},
	} {
		if each.applies {
			out = append(out, each.text)
		}
	}
	return out
}

// warnCSIDriver returns a warning when new requests of tokens do not say where the tokens are.
func warnCSIDriver(next, old *storagev1.CSIDriver) []string {
	s := &next.Spec
	if len(s.TokenRequests) == 0 || s.ServiceAccountTokenInSecrets != nil ||
		old != nil && equality.Semantic.DeepEqual(s.TokenRequests, old.Spec.TokenRequests) {
		return nil
	}
	return []string{"spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, " +
		"set to true to prevent possible logging of tokens in volume attributes"}
}
