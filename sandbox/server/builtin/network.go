// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func checkIngress(f *findings, next, _ *networkingv1.Ingress) {
	s := &next.Spec
	if len(s.Rules) == 0 && s.DefaultBackend == nil {
		f.invalid(spec(), s.Rules, "either `defaultBackend` or `rules` must be specified")
	}
	if s.DefaultBackend != nil {
		checkBackend(f, spec().Child("defaultBackend"), s.DefaultBackend)
	}
	for i, rule := range s.Rules {
		at := spec().Child("rules").Index(i)
		checkHost(f, at.Child("host"), rule.Host)
		if rule.HTTP == nil {
			continue
		}
		paths := at.Child("http", "paths")
		if len(rule.HTTP.Paths) == 0 {
			f.required(paths, "")
		}
		for j := range rule.HTTP.Paths {
			checkIngressPath(f, paths.Index(j), &rule.HTTP.Paths[j])
		}
	}
	for i, t := range s.TLS {
		at := spec().Child("tls").Index(i)
		for j, host := range t.Hosts {
			checkDomain(f, at.Child("hosts").Index(j), host)
		}
		if t.SecretName != "" {
			f.each(at.Child("secretName"), t.SecretName, validation.NameIsDNSSubdomain(t.SecretName, false))
		}
	}
	if s.IngressClassName != nil {
		f.each(spec().Child("ingressClassName"), *s.IngressClassName, validation.NameIsDNSSubdomain(*s.IngressClassName, false))
	}
}

// checkHost checks the host of a rule, which may be absent.
func checkHost(f *findings, path *field.Path, host string) {
	if host == "" {
		return
	}
	if _, err := netip.ParseAddr(host); err == nil {
		f.invalid(path, host, "must be a DNS name, not an IP address")
	}
	checkDomain(f, path, host)
}

// checkDomain checks a name of the DNS, which may have a wildcard.
func checkDomain(f *findings, path *field.Path, name string) {
	if strings.Contains(name, "*") {
		f.each(path, name, utilvalidation.IsWildcardDNS1123Subdomain(name))
	} else {
		f.each(path, name, utilvalidation.IsDNS1123Subdomain(name))
	}
}

func checkIngressPath(f *findings, path *field.Path, p *networkingv1.HTTPIngressPath) {
	if p.PathType == nil {
		f.required(path.Child("pathType"), "pathType must be specified")
		return
	}
	absolute := func() {
		if !strings.HasPrefix(p.Path, "/") {
			f.invalid(path.Child("path"), p.Path, "must be an absolute path")
		}
	}
	switch *p.PathType {
	case networkingv1.PathTypeExact, networkingv1.PathTypePrefix:
		absolute()
		for _, part := range []string{"//", "/./", "/../", "%2f", "%2F"} {
			if strings.Contains(p.Path, part) {
				f.invalid(path.Child("path"), p.Path, fmt.Sprintf("must not contain '%s'", part))
			}
		}
		for _, end := range []string{"/..", "/."} {
			if strings.HasSuffix(p.Path, end) {
				f.invalid(path.Child("path"), p.Path, fmt.Sprintf("cannot end with '%s'", end))
			}
		}
	case networkingv1.PathTypeImplementationSpecific:
		if p.Path != "" {
			absolute()
		}
	default:
		supported(f, path.Child("pathType"), *p.PathType, networkingv1.PathTypeExact, networkingv1.PathTypeImplementationSpecific, networkingv1.PathTypePrefix)
	}
	checkBackend(f, path.Child("backend"), &p.Backend)
}

func checkBackend(f *findings, path *field.Path, b *networkingv1.IngressBackend) {
	switch {
	case b.Resource != nil && b.Service != nil:
		f.invalid(path, "", "cannot set both resource and service backends")
	case b.Resource != nil:
		f.filled(path.Child("resource", "kind"), b.Resource.Kind)
		f.filled(path.Child("resource", "name"), b.Resource.Name)
	case b.Service == nil:
		f.invalid(path, "", "resource or service backend is required")
	default:
		service := path.Child("service")
		if f.filled(service.Child("name"), b.Service.Name) {
			f.each(service.Child("name"), b.Service.Name, validation.NameIsDNSLabel(b.Service.Name, false))
		}
		switch port := b.Service.Port; {
		case port.Name != "" && port.Number != 0:
			f.invalid(path, "", "cannot set both port name & port number")
		case port.Name != "":
			f.each(service.Child("port", "name"), port.Name, utilvalidation.IsValidPortName(port.Name))
		case port.Number != 0:
			checkPort(f, service.Child("port", "number"), port.Number)
		default:
			f.required(path, "port name or number is required")
		}
	}
}

func fillNetworkPolicy(p *networkingv1.NetworkPolicy) {
	s := &p.Spec
	if len(s.PolicyTypes) == 0 {
		s.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(s.Egress) > 0 {
			s.PolicyTypes = append(s.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
	eachPort(s, func(_ *field.Path, p *networkingv1.NetworkPolicyPort) { initial(&p.Protocol, corev1.ProtocolTCP) })
}

// eachPort calls do for the ports of all rules of a policy.
func eachPort(s *networkingv1.NetworkPolicySpec, do func(*field.Path, *networkingv1.NetworkPolicyPort)) {
	for i := range s.Ingress {
		for j := range s.Ingress[i].Ports {
			do(spec().Child("ingress").Index(i).Child("ports").Index(j), &s.Ingress[i].Ports[j])
		}
	}
	for i := range s.Egress {
		for j := range s.Egress[i].Ports {
			do(spec().Child("egress").Index(i).Child("ports").Index(j), &s.Egress[i].Ports[j])
		}
	}
}

func checkNetworkPolicy(f *findings, next, _ *networkingv1.NetworkPolicy) {
	s := &next.Spec
	check := func(path *field.Path, selector *metav1.LabelSelector) {
		f.add(metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path))
	}
	check(spec().Child("podSelector"), &s.PodSelector)
	eachPort(s, func(path *field.Path, p *networkingv1.NetworkPolicyPort) {
		supportedIf(f, path.Child("protocol"), p.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
		if p.Port != nil {
			checkPortOrName(f, path.Child("port"), *p.Port)
		}
		if p.EndPort != nil && (p.Port == nil || p.Port.Type == intstr.String) {
			f.invalid(path.Child("endPort"), *p.EndPort, "may not be specified when `port` is not specified")
		}
	})
	for i, rule := range s.Ingress {
		checkPeers(f, spec().Child("ingress").Index(i).Child("from"), rule.From)
	}
	for i, rule := range s.Egress {
		checkPeers(f, spec().Child("egress").Index(i).Child("to"), rule.To)
	}
	if types := spec().Child("policyTypes"); len(s.PolicyTypes) > 2 {
		f.invalid(types, s.PolicyTypes, "may not specify more than two policyTypes")
		return
	}
	for i, each := range s.PolicyTypes {
		supported(f, spec().Child("policyTypes").Index(i), each, networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress)
	}
}

func checkPeers(f *findings, path *field.Path, peers []networkingv1.NetworkPolicyPeer) {
	for i, p := range peers {
		at := path.Index(i)
		switch {
		case p.IPBlock == nil && p.PodSelector == nil && p.NamespaceSelector == nil:
			f.required(at, "must specify a peer")
		case p.IPBlock != nil && (p.PodSelector != nil || p.NamespaceSelector != nil):
			f.forbidden(at, "may not specify both ipBlock and another peer")
		case p.IPBlock != nil:
			checkBlock(f, at.Child("ipBlock"), p.IPBlock)
		}
	}
}

// checkBlock checks a range of addresses and the ranges that it leaves out.
func checkBlock(f *findings, path *field.Path, b *networkingv1.IPBlock) {
	if !f.filled(path.Child("cidr"), b.CIDR) {
		return
	}
	whole, valid := checkRange(f, path.Child("cidr"), b.CIDR)
	for i, text := range b.Except {
		at := path.Child("except").Index(i)
		part, ok := checkRange(f, at, text)
		if valid && ok && (!whole.Contains(part.Addr()) || part.Bits() <= whole.Bits()) {
			f.invalid(at, text, "must be a strict subset of `cidr`")
		}
	}
}

// checkRange checks a range of addresses, and returns it if it is valid.
func checkRange(f *findings, path *field.Path, text string) (netip.Prefix, bool) {
	out, err := netip.ParsePrefix(text)
	if err != nil {
		f.invalid(path, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")
	}
	return out, err == nil
}
