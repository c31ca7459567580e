// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"net/netip"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// addresses gives Services addresses in the cluster and ports of nodes, as the API server does at once.
type addresses struct {
	mu   sync.Mutex
	last netip.Addr
	port int32
}

// The first address and the first port of nodes are those of a usual cluster; some before them have other uses.
func newAddresses() *addresses {
	return &addresses{last: netip.AddrFrom4([4]byte{10, 96, 0, 10}), port: 29999}
}

// begin gives a Service what it lacks.
func (a *addresses) begin(s *corev1.Service) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		return
	}
	if len(s.Spec.ClusterIPs) == 0 && s.Spec.ClusterIP != "" {
		s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
	}
	if s.Spec.ClusterIP == "" {
		a.last = a.last.Next()
		s.Spec.ClusterIP = a.last.String()
		s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
	} else if used, err := netip.ParseAddr(s.Spec.ClusterIP); err == nil && a.last.Less(used) && used.As4()[0] == 10 {
		a.last = used
	}
	if s.Spec.ClusterIP == corev1.ClusterIPNone && len(s.Spec.Selector) == 0 && len(s.Spec.IPFamilies) == 0 {
		initial(&s.Spec.IPFamilyPolicy, corev1.IPFamilyPolicyRequireDualStack) // its addresses can be of any family
		s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	}
	if len(s.Spec.IPFamilies) == 0 {
		s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	initial(&s.Spec.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack)
	if !hasNodePorts(s) {
		return
	}
	for i := range s.Spec.Ports {
		if at := &s.Spec.Ports[i].NodePort; *at == 0 {
			a.port++
			*at = a.port
		}
	}
}

// keep gives a Service what the stored one has been given.
func (a *addresses) keep(next, old *corev1.Service) {
	dropForType(next, old)
	if next.Spec.Type != corev1.ServiceTypeExternalName && next.Spec.ClusterIP == "" && len(next.Spec.ClusterIPs) == 0 {
		next.Spec.ClusterIP, next.Spec.ClusterIPs = old.Spec.ClusterIP, old.Spec.ClusterIPs
	}
	if hasNodePorts(next) {
		for i := range next.Spec.Ports {
			keepPort(&next.Spec.Ports[i], old.Spec.Ports)
		}
	}
	a.begin(next)
}

// keepPort gives a port the port of nodes that the same one of the stored Service has.
func keepPort(p *corev1.ServicePort, stored []corev1.ServicePort) {
	for _, old := range stored {
		if p.NodePort == 0 && old.Port == p.Port && old.Protocol == p.Protocol {
			p.NodePort = old.NodePort
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
