// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// dropForType removes fields that a Service does not use after a change of its type. The server may have set them, so a
// client does not have to remove them. A field that the client has changed as well stays, and is rejected.
func dropForType(next, old *corev1.Service) {
	s, was := &next.Spec, &old.Spec
	if hasAddress(was) && !hasAddress(s) {
		dropAddresses(s, was)
	}
	if hasNodePorts(old) && !hasNodePorts(next) && addsNoNodePorts(s, was) {
		for i := range s.Ports {
			s.Ports[i].NodePort = 0
		}
	}
	if hasHealthCheck(was) && !hasHealthCheck(s) && s.HealthCheckNodePort == was.HealthCheckNodePort {
		s.HealthCheckNodePort = 0
	}
	if was.Type == corev1.ServiceTypeLoadBalancer && s.Type != corev1.ServiceTypeLoadBalancer {
		dropSame(&s.AllocateLoadBalancerNodePorts, was.AllocateLoadBalancerNodePorts)
		dropSame(&s.LoadBalancerClass, was.LoadBalancerClass)
	}
	if isExternal(was) && !isExternal(s) && s.ExternalTrafficPolicy == was.ExternalTrafficPolicy {
		s.ExternalTrafficPolicy = ""
	}
}

func dropAddresses(s, was *corev1.ServiceSpec) {
	if s.ClusterIP == was.ClusterIP && slices.Equal(s.ClusterIPs, was.ClusterIPs) {
		s.ClusterIP, s.ClusterIPs = "", nil
	}
	if slices.Equal(s.IPFamilies, was.IPFamilies) {
		s.IPFamilies = nil
	}
	dropSame(&s.IPFamilyPolicy, was.IPFamilyPolicy)
	dropSame(&s.InternalTrafficPolicy, was.InternalTrafficPolicy)
}

// dropSame removes a value that has not changed.
func dropSame[T any](at **T, was *T) {
	if reflect.DeepEqual(*at, was) {
		*at = nil
	}
}

// addsNoNodePorts reports whether all ports of nodes are those of the stored Service.
func addsNoNodePorts(s, was *corev1.ServiceSpec) bool {
	known := map[int32]bool{0: true}
	for _, p := range was.Ports {
		known[p.NodePort] = true
	}
	return !slices.ContainsFunc(s.Ports, func(p corev1.ServicePort) bool { return !known[p.NodePort] })
}

func hasAddress(s *corev1.ServiceSpec) bool { return s.Type != corev1.ServiceTypeExternalName }

func hasHealthCheck(s *corev1.ServiceSpec) bool {
	return s.Type == corev1.ServiceTypeLoadBalancer && s.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

// isExternal reports whether a Service takes traffic from outside of the cluster.
func isExternal(s *corev1.ServiceSpec) bool {
	return s.Type == corev1.ServiceTypeLoadBalancer || s.Type == corev1.ServiceTypeNodePort ||
		s.Type == corev1.ServiceTypeClusterIP && len(s.ExternalIPs) > 0
}
