// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// beginService sets the list of a Service's addresses. The server gives it the addresses.
func beginService(s *corev1.Service) {
	if len(s.Spec.ClusterIPs) == 0 && s.Spec.ClusterIP != "" {
		s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
	}
}

// keepService gives a Service the addresses and the ports of nodes of the stored one.
func keepService(next, old *corev1.Service) {
	keepAddresses(&next.Spec, &old.Spec)
	dropForType(next, old)
	if s, was := &next.Spec, &old.Spec; hasHealthCheck(s) && hasHealthCheck(was) && s.HealthCheckNodePort == 0 {
		s.HealthCheckNodePort = was.HealthCheckNodePort
	}
	if hasNodePorts(next) && hasNodePorts(old) {
		keepPorts(next.Spec.Ports, old.Spec.Ports)
	}
}

// keepAddresses gives a Service the addresses of the stored one. A client can change one of the two fields that have them.
func keepAddresses(s, was *corev1.ServiceSpec) {
	if hasAddress(s) && hasAddress(was) {
		orElse(&s.ClusterIP, was.ClusterIP)
		if len(s.ClusterIPs) == 0 {
			s.ClusterIPs = was.ClusterIPs
		}
	}
	switch same := slices.Equal(s.ClusterIPs, was.ClusterIPs); {
	case s.ClusterIP == was.ClusterIP && len(s.ClusterIPs) == 0:
		s.ClusterIPs = was.ClusterIPs
	case s.ClusterIP == was.ClusterIP || !same:
	case s.ClusterIP == "":
		s.ClusterIPs = nil
	default:
		s.ClusterIPs = []string{s.ClusterIP}
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
