// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

func TestWarningsAreAboutFieldsWithoutEffect(t *testing.T) {
	addresses := []string{"1.2.3.4"}
	for name, c := range map[string]struct {
		spec corev1.ServiceSpec
		want string
	}{
		"a headless Service with nothing to ignore": {corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, SessionAffinity: corev1.ServiceAffinityNone}, ""},
		"a headless Service": {
			corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, LoadBalancerIP: "1.2.3.4", ExternalIPs: addresses, SessionAffinity: corev1.ServiceAffinityClientIP},
			"spec.loadBalancerIP is ignored for headless services; spec.externalIPs is ignored for headless services; spec.SessionAffinity is ignored for headless services",
		},
		"a name":           {corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalIPs: addresses}, `spec.externalIPs is ignored when spec.type is "ExternalName"`},
		"a usual Service":  {corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, LoadBalancerIP: "1.2.3.4", SessionAffinity: corev1.ServiceAffinityClientIP}, ""},
		"external address": {corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ExternalIPs: addresses}, "spec.externalIPs is deprecated and may no longer be implemented in some clusters"},
	} {
		if got := strings.Join(warnService(&corev1.Service{Spec: c.spec}, nil), "; "); got != c.want {
			t.Errorf("%s: the warnings are %q, want %q", name, got, c.want)
		}
	}
}

func TestNewRequestsOfTokensAreWarnedOf(t *testing.T) {
	driver := func(audience string, inSecrets *bool) *storagev1.CSIDriver {
		return &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{
			TokenRequests: []storagev1.TokenRequest{{Audience: audience}}, ServiceAccountTokenInSecrets: inSecrets,
		}}
	}
	for name, c := range map[string]struct {
		next, old *storagev1.CSIDriver
		want      int
	}{
		"a new driver without requests":    {&storagev1.CSIDriver{}, nil, 0},
		"a new driver":                     {driver("a", nil), nil, 1},
		"a new driver that says the place": {driver("a", new(false)), nil, 0},
		"a driver with the same requests":  {driver("a", nil), driver("a", nil), 0},
		"a driver with other requests":     {driver("b", nil), driver("a", nil), 1},
	} {
		if got := warnCSIDriver(c.next, c.old); len(got) != c.want {
			t.Errorf("%s: the warnings are %q", name, got)
		}
	}
}
