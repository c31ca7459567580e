// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// beginService sets the families of a Service's addresses. The server gives it the addresses.
func beginService(s *corev1.Service) {
	if len(s.Spec.ClusterIPs) == 0 && s.Spec.ClusterIP != "" {
		s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
	}
	if hasAddress(&s.Spec) {
		fillFamilies(s)
	}
}

// fillFamilies sets the families of the addresses of a Service that has some.
func fillFamilies(s *corev1.Service) {
	free := isFree(&s.Spec)
	if free {
		initial(&s.Spec.IPFamilyPolicy, corev1.IPFamilyPolicyRequireDualStack)
	}
	initial(&s.Spec.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack)
	if len(s.Spec.IPFamilies) == 0 {
		s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	if free && len(s.Spec.IPFamilies) == 1 && *s.Spec.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
		other := corev1.IPv6Protocol
		if s.Spec.IPFamilies[0] == other {
			other = corev1.IPv4Protocol
		}
		s.Spec.IPFamilies = append(s.Spec.IPFamilies, other)
	}
}

// isFree reports whether the addresses of a Service can be of any family, as it has none of its own and selects no Pods.
func isFree(s *corev1.ServiceSpec) bool {
	return s.ClusterIP == corev1.ClusterIPNone && len(s.Selector) == 0
}

// keepService gives a Service the addresses and the ports of nodes of the stored one.
func keepService(next, old *corev1.Service) {
	if s := &next.Spec; s.ClusterIP != "" && s.ClusterIP != old.Spec.ClusterIP && slices.Equal(s.ClusterIPs, old.Spec.ClusterIPs) {
		s.ClusterIPs = nil // the client has changed one of two fields that say the same
	}
	dropForType(next, old)
	if next.Spec.Type != corev1.ServiceTypeExternalName && next.Spec.ClusterIP == "" && len(next.Spec.ClusterIPs) == 0 {
		next.Spec.ClusterIP, next.Spec.ClusterIPs = old.Spec.ClusterIP, old.Spec.ClusterIPs
	}
	if hasNodePorts(next) && hasNodePorts(old) {
		keepPorts(next.Spec.Ports, old.Spec.Ports)
	}
	if s := &next.Spec; hasAddress(s) {
		if s.IPFamilyPolicy == nil {
			s.IPFamilyPolicy = old.Spec.IPFamilyPolicy
		}
		single := s.IPFamilyPolicy != nil && *s.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack
		if single && len(s.IPFamilies) > 1 && slices.Equal(s.IPFamilies, old.Spec.IPFamilies) {
			s.IPFamilies = s.IPFamilies[:1]
		}
		beginService(next)
	}
}

// keepPorts gives ports the ports of nodes that ports of the same names of the stored Service have, unless others ask for them.
func keepPorts(ports, stored []corev1.ServicePort) {
	asked, byName := map[int32]bool{}, map[string]int32{}
	for _, p := range ports {
		asked[p.NodePort] = true
	}
	for _, old := range stored {
		byName[old.Name] = old.NodePort
	}
	for i := range ports {
		if p := &ports[i]; p.NodePort == 0 && !asked[byName[p.Name]] {
			p.NodePort = byName[p.Name]
		}
	}
}

func hasNodePorts(s *corev1.Service) bool {
	switch s.Spec.Type {
	case corev1.ServiceTypeNodePort:
		return true
	case corev1.ServiceTypeLoadBalancer:
		return s.Spec.AllocateLoadBalancerNodePorts == nil || *s.Spec.AllocateLoadBalancerNodePorts
	}
	return false
}

func fillService(service *corev1.Service) {
	s := &service.Spec
	orElse(&s.Type, corev1.ServiceTypeClusterIP)
	orElse(&s.SessionAffinity, corev1.ServiceAffinityNone)
	switch s.SessionAffinity {
	case corev1.ServiceAffinityNone:
		s.SessionAffinityConfig = nil
	case corev1.ServiceAffinityClientIP:
		initial(&s.SessionAffinityConfig, corev1.SessionAffinityConfig{})
		initial(&s.SessionAffinityConfig.ClientIP, corev1.ClientIPConfig{})
		initial(&s.SessionAffinityConfig.ClientIP.TimeoutSeconds, corev1.DefaultClientIPServiceAffinitySeconds)
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		orElse(&p.Protocol, corev1.ProtocolTCP)
		if p.TargetPort == intstr.FromInt32(0) || p.TargetPort == intstr.FromString("") {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	balanced := s.Type == corev1.ServiceTypeLoadBalancer
	if balanced || s.Type == corev1.ServiceTypeNodePort || len(s.ExternalIPs) > 0 {
		orElse(&s.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	if s.Type != corev1.ServiceTypeExternalName {
		initial(&s.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
	if !balanced {
		return
	}
	initial(&s.AllocateLoadBalancerNodePorts, true)
	for i := range service.Status.LoadBalancer.Ingress {
		if at := &service.Status.LoadBalancer.Ingress[i]; at.IP != "" {
			initial(&at.IPMode, corev1.LoadBalancerIPModeVIP)
		}
	}
}
