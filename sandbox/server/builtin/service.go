// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkService checks a Service.
func checkService(f *findings, next, old *corev1.Service) {
	if old != nil {
		checkAddressChange(f, &next.Spec, &old.Spec)
	}
	s, path := &next.Spec, spec()
	headless := s.ClusterIP == corev1.ClusterIPNone
	if len(s.Ports) == 0 && !headless && s.Type != corev1.ServiceTypeExternalName {
		f.required(path.Child("ports"), "")
	}
	checkServiceType(f, path, s, headless)
	names := map[string]bool{}
	for i, p := range s.Ports {
		checkServicePort(f, path.Child("ports").Index(i), p, len(s.Ports) > 1, names)
	}
	if s.Selector != nil {
		f.add(metav1validation.ValidateLabels(s.Selector, path.Child("selector")))
	}
	oneOf(f, path.Child("sessionAffinity"), s.SessionAffinity, corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone)
	for i, address := range s.ExternalIPs {
		checkExternal(f, path.Child("externalIPs").Index(i), address)
	}
	oneOf(f, path.Child("type"), s.Type,
		corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort)
	checkSamePorts(f, path.Child("ports"), s)
	checkSources(f, path.Child("LoadBalancerSourceRanges"), s) // the API server writes this field in upper case
	checkTraffic(f, path, s)
}

// checkServiceType checks what a type of Service requires and excludes.
func checkServiceType(f *findings, path *field.Path, s *corev1.ServiceSpec, headless bool) {
	switch s.Type {
	case corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort:
		if headless {
			f.invalid(path.Child("clusterIPs").Index(0), s.ClusterIP, "may not be set to 'None' for "+string(s.Type)+" services")
		}
	case corev1.ServiceTypeExternalName:
		const why = "may not be set for ExternalName services"
		if len(s.ClusterIPs) > 0 {
			f.forbidden(path.Child("clusterIPs"), why)
		}
		if len(s.IPFamilies) > 0 {
			f.forbidden(path.Child("ipFamilies"), why)
		}
		if s.IPFamilyPolicy != nil {
			f.forbidden(path.Child("ipFamilyPolicy"), why)
		}
		name := strings.TrimSuffix(s.ExternalName, ".")
		if f.filled(path.Child("externalName"), name) {
			f.each(path.Child("externalName"), name, utilvalidation.IsDNS1123Subdomain(name))
		}
	}
}

// checkServicePort checks a port. If there are several, each needs a name of its own.
func checkServicePort(f *findings, path *field.Path, p corev1.ServicePort, named bool, names map[string]bool) {
	switch {
	case p.Name != "":
		f.each(path.Child("name"), p.Name, utilvalidation.IsDNS1123Label(p.Name))
		if names[p.Name] {
			f.duplicate(path.Child("name"), p.Name)
		}
		names[p.Name] = true
	case named:
		f.required(path.Child("name"), "")
	}
	checkPort(f, path.Child("port"), p.Port)
	checkProtocol(f, path.Child("protocol"), p.Protocol)
	checkPortOrName(f, path.Child("targetPort"), p.TargetPort)
	if p.AppProtocol != nil {
		f.each(path.Child("appProtocol"), *p.AppProtocol, utilvalidation.IsQualifiedName(*p.AppProtocol))
	}
}

// checkSamePorts checks that ports differ, in the cluster and on its nodes.
func checkSamePorts(f *findings, path *field.Path, s *corev1.ServiceSpec) {
	type key struct {
		protocol corev1.Protocol
		number   int32
	}
	nodes, ports := map[key]bool{}, map[key]bool{}
	for i, p := range s.Ports {
		if p.NodePort == 0 {
			continue
		}
		if s.Type == corev1.ServiceTypeClusterIP {
			f.forbidden(path.Index(i).Child("nodePort"), "may not be used when `type` is 'ClusterIP'")
		}
		if at := (key{p.Protocol, p.NodePort}); nodes[at] {
			f.duplicate(path.Index(i).Child("nodePort"), p.NodePort)
		} else {
			nodes[at] = true
		}
	}
	for i, p := range s.Ports {
		if at := (key{p.Protocol, p.Port}); ports[at] {
			f.duplicate(path.Index(i), inside(corev1.ServicePort{Protocol: p.Protocol, Port: p.Port}))
		} else {
			ports[at] = true
		}
	}
}

// checkAddressChange checks that a Service keeps its addresses.
func checkAddressChange(f *findings, next, old *corev1.ServiceSpec) {
	if next.Type == corev1.ServiceTypeExternalName || old.Type == corev1.ServiceTypeExternalName {
		return
	}
	at := spec().Child("clusterIPs")
	if len(old.ClusterIPs) > 0 && len(next.ClusterIPs) == 0 {
		f.invalid(at.Index(0), next.ClusterIPs, "primary clusterIP can not be unset")
	}
	for i := range min(len(old.ClusterIPs), len(next.ClusterIPs)) {
		if old.ClusterIPs[i] != next.ClusterIPs[i] {
			f.invalid(at.Index(i), next.ClusterIPs, "may not change once set")
		}
	}
	if next.Type == corev1.ServiceTypeLoadBalancer && old.Type == corev1.ServiceTypeLoadBalancer {
		f.fixed(spec().Child("loadBalancerClass"), next.LoadBalancerClass, old.LoadBalancerClass)
	}
	if hasHealthCheck(next) && hasHealthCheck(old) && next.HealthCheckNodePort != old.HealthCheckNodePort {
		f.forbidden(spec().Child("healthCheckNodePort"), "field is immutable")
	}
}

// checkExternal checks an address outside of the cluster that Pods can be reached by.
func checkExternal(f *findings, path *field.Path, address string) {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		f.add(utilvalidation.IsValidIPForLegacyField(path, address, true, nil))
		return
	}
	for _, each := range []struct {
		is  bool
		why string
	}{
		{ip.IsUnspecified(), "may not be unspecified (" + address + ")"},
		{ip.IsLoopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)"},
		{ip.IsLinkLocalUnicast(), "may not be in the link-local range (169.254.0.0/16, fe80::/10)"},
		{ip.IsLinkLocalMulticast(), "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"},
	} {
		if each.is {
			f.invalid(path, address, each.why)
		}
	}
}

// checkSources checks the networks from which a load balancer takes traffic.
func checkSources(f *findings, path *field.Path, s *corev1.ServiceSpec) {
	if len(s.LoadBalancerSourceRanges) > 0 && s.Type != corev1.ServiceTypeLoadBalancer {
		f.forbidden(path, "may only be used when `type` is 'LoadBalancer'")
	}
	for i, cidr := range s.LoadBalancerSourceRanges {
		f.add(utilvalidation.IsValidCIDRForLegacyField(path.Index(i), strings.TrimSpace(cidr), true, nil))
	}
}

// checkHealthPort checks the port by which load balancers learn which nodes have Pods.
func checkHealthPort(f *findings, path *field.Path, s *corev1.ServiceSpec) {
	switch port := s.HealthCheckNodePort; {
	case !hasHealthCheck(s) && port != 0:
		f.invalid(path, port, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'")
	case hasHealthCheck(s) && port == 0:
		f.required(path, "")
	case hasHealthCheck(s):
		checkPort(f, path, port)
	}
}

// checkTraffic checks from where a Service takes traffic.
func checkTraffic(f *findings, path *field.Path, s *corev1.ServiceSpec) {
	balanced := s.Type == corev1.ServiceTypeLoadBalancer
	if s.AllocateLoadBalancerNodePorts != nil && !balanced {
		f.forbidden(path.Child("allocateLoadBalancerNodePorts"), "may only be used when `type` is 'LoadBalancer'")
	}
	switch {
	case s.LoadBalancerClass == nil:
	case !balanced:
		f.forbidden(path.Child("loadBalancerClass"), "may only be used when `type` is 'LoadBalancer'")
	default:
		f.each(path.Child("loadBalancerClass"), *s.LoadBalancerClass, utilvalidation.IsQualifiedName(*s.LoadBalancerClass))
	}
	switch external := path.Child("externalTrafficPolicy"); {
	case balanced || s.Type == corev1.ServiceTypeNodePort || len(s.ExternalIPs) > 0:
		oneOf(f, external, s.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)
	case s.ExternalTrafficPolicy != "":
		f.invalid(external, s.ExternalTrafficPolicy, "may only be set for externally-accessible services")
	}
	checkHealthPort(f, path.Child("healthCheckNodePort"), s)
	supportedIf(f, path.Child("internalTrafficPolicy"), s.InternalTrafficPolicy,
		corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal)
}
