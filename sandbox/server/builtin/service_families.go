// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// allocateFamilies sets the families of the addresses of a Service. A real server does so before it checks anything else. Its cluster
// has one family.
func allocateFamilies(f *findings, next, old *corev1.Service) {
	s, was := &next.Spec, &corev1.ServiceSpec{}
	if old != nil {
		was = &old.Spec
	}
	if !hasAddress(s) || prefersAsBefore(s, was) {
		return
	}
	fillFamilyPolicy(s, was)
	if checkAddresses(f, spec(), s); len(f.list) > 0 {
		return
	}
	if releaseFamilies(f, s, was); len(f.list) > 0 {
		return
	}
	inferFamilies(f, s)
	switch {
	case len(f.list) > 0:
	case isFree(s):
		fillFree(s)
	default:
		if checkStack(f, spec(), s); len(f.list) == 0 && len(s.IPFamilies) == 0 {
			s.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
		}
	}
}

// prefersAsBefore reports whether a Service keeps its addresses, as it has those that the cluster could give it.
func prefersAsBefore(s, was *corev1.ServiceSpec) bool {
	prefers := func(s *corev1.ServiceSpec) bool {
		return s.IPFamilyPolicy != nil && *s.IPFamilyPolicy == corev1.IPFamilyPolicyPreferDualStack
	}
	return prefers(s) && prefers(was) && s.Type == was.Type && sameAddresses(s, was) && slices.Equal(s.IPFamilies, was.IPFamilies)
}

func sameAddresses(s, was *corev1.ServiceSpec) bool {
	return s.ClusterIP == was.ClusterIP && slices.Equal(s.ClusterIPs, was.ClusterIPs)
}

// fillFamilyPolicy sets the policy of a Service without one: the former one, or the one that its addresses suggest.
func fillFamilyPolicy(s, was *corev1.ServiceSpec) {
	if s.IPFamilyPolicy == nil {
		s.IPFamilyPolicy = was.IPFamilyPolicy
	}
	if isFree(s) {
		initial(&s.IPFamilyPolicy, corev1.IPFamilyPolicyRequireDualStack)
	}
	initial(&s.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack)
}

// isFree reports whether the addresses of a Service can be of any family, as it has none of its own and selects no Pods.
func isFree(s *corev1.ServiceSpec) bool {
	return s.ClusterIP == corev1.ClusterIPNone && len(s.Selector) == 0
}

// fillFree sets the families of a Service whose addresses are free.
func fillFree(s *corev1.ServiceSpec) {
	if len(s.IPFamilies) == 0 {
		s.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	if len(s.IPFamilies) == 1 && *s.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
		other := corev1.IPv6Protocol
		if s.IPFamilies[0] == other {
			other = corev1.IPv4Protocol
		}
		s.IPFamilies = append(s.IPFamilies, other)
	}
}

// releaseFamilies removes the second address and family of a Service that is to have one, and checks that others keep theirs.
func releaseFamilies(f *findings, s, was *corev1.ServiceSpec) {
	if *s.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack {
		releaseSecond(f, s, was)
		return
	}
	policy := spec().Child("ipFamilyPolicy")
	if len(s.ClusterIPs) > 0 && len(s.ClusterIPs) < len(was.ClusterIPs) {
		f.invalid(policy, *s.IPFamilyPolicy, "must be 'SingleStack' to release the secondary cluster IP")
	}
	if len(s.IPFamilies) > 0 && len(s.IPFamilies) < len(was.IPFamilies) {
		f.invalid(policy, *s.IPFamilyPolicy, "must be 'SingleStack' to release the secondary IP family")
	}
}

// releaseSecond removes the second address and family of a Service, unless a client has just set them: that is an error.
func releaseSecond(f *findings, s, was *corev1.ServiceSpec) {
	policy := spec().Child("ipFamilyPolicy")
	if len(s.ClusterIPs) > 1 && sameAddresses(s, was) {
		s.ClusterIPs = s.ClusterIPs[:1]
	}
	if len(s.IPFamilies) > 1 && slices.Equal(s.IPFamilies, was.IPFamilies) {
		s.IPFamilies = s.IPFamilies[:1]
	}
	const why = "must be 'RequireDualStack' or 'PreferDualStack' when multiple %s are specified"
	if len(s.ClusterIPs) == 2 {
		f.invalid(policy, *s.IPFamilyPolicy, fmt.Sprintf(why, "cluster IPs"))
	}
	if len(s.IPFamilies) == 2 {
		f.invalid(policy, *s.IPFamilyPolicy, fmt.Sprintf(why, "IP families"))
	}
}

// inferFamilies sets the families that the addresses of a Service have.
func inferFamilies(f *findings, s *corev1.ServiceSpec) {
	for i, address := range s.ClusterIPs {
		switch ip, err := netip.ParseAddr(address); {
		case err != nil || i < len(s.IPFamilies): // it is headless, or the families are checked later
		case ip.Is4():
			s.IPFamilies = append(s.IPFamilies, corev1.IPv4Protocol)
		default:
			f.invalid(spec().Child("clusterIPs").Index(i), s.ClusterIPs, "IPv6 is not configured on this cluster")
		}
	}
}

// checkStack checks that the cluster has the families of a Service.
func checkStack(f *findings, path *field.Path, s *corev1.ServiceSpec) {
	if *s.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack {
		f.invalid(path.Child("ipFamilyPolicy"), *s.IPFamilyPolicy, "this cluster is not configured for dual-stack services")
	}
	for i, family := range s.IPFamilies {
		if family == corev1.IPv6Protocol {
			f.invalid(path.Child("ipFamilies").Index(i), family, "not configured on this cluster")
		}
	}
}

// checkAddresses checks the addresses in the cluster and their families.
func checkAddresses(f *findings, path *field.Path, s *corev1.ServiceSpec) {
	at := path.Child("clusterIPs")
	switch {
	case s.ClusterIP == "" && len(s.ClusterIPs) > 0:
		f.invalid(at, s.ClusterIPs, "must be empty when `clusterIP` is not specified")
	case s.ClusterIP != "" && len(s.ClusterIPs) == 0:
		f.required(at, "")
	case s.ClusterIP != "" && s.ClusterIPs[0] != s.ClusterIP:
		f.invalid(at, s.ClusterIPs, "first value must match `clusterIP`")
	}
	for i, family := range s.IPFamilies {
		supported(f, path.Child("ipFamilies").Index(i), family, corev1.IPv4Protocol, corev1.IPv6Protocol)
		if slices.Contains(s.IPFamilies[:i], family) {
			f.duplicate(path.Child("ipFamilies").Index(i), family)
		}
	}
	supportedIf(f, path.Child("ipFamilyPolicy"), s.IPFamilyPolicy,
		corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack, corev1.IPFamilyPolicySingleStack)
	readable := true
	for i := range s.ClusterIPs {
		readable = checkAddress(f, at, i, s) && readable
	}
	if len(s.ClusterIPs) > 2 {
		f.invalid(at, s.ClusterIPs, "may only hold up to 2 values")
	}
	if readable {
		checkAddressFamilies(f, at, s)
	}
}

// checkAddress checks the form of an address of a Service.
func checkAddress(f *findings, at *field.Path, i int, s *corev1.ServiceSpec) bool {
	if i == 0 && s.ClusterIPs[i] == corev1.ClusterIPNone {
		if len(s.ClusterIPs) == 1 {
			return true
		}
		f.invalid(at, s.ClusterIPs, "'None' must be the first and only value")
		return false
	}
	if _, err := netip.ParseAddr(s.ClusterIPs[i]); err == nil {
		return true
	}
	f.invalid(at.Index(i), s.ClusterIPs[i], "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
	return false
}

// checkAddressFamilies checks that addresses, which can be read, are of different families, and of those that are specified.
func checkAddressFamilies(f *findings, at *field.Path, s *corev1.ServiceSpec) {
	var families []corev1.IPFamily
	for _, address := range s.ClusterIPs {
		if ip, err := netip.ParseAddr(address); err == nil && ip.Is4() {
			families = append(families, corev1.IPv4Protocol)
		} else if err == nil {
			families = append(families, corev1.IPv6Protocol)
		}
	}
	if len(families) > 1 && (!slices.Contains(families, corev1.IPv4Protocol) || !slices.Contains(families, corev1.IPv6Protocol)) {
		f.invalid(at, s.ClusterIPs, "may specify no more than one IP for each IP family")
	}
	for i, want := range s.IPFamilies[:min(len(families), len(s.IPFamilies))] {
		if want != families[i] && (want == corev1.IPv4Protocol || want == corev1.IPv6Protocol) {
			f.invalid(at.Index(i), s.ClusterIPs[i], fmt.Sprintf("expected an %s value as indicated by `ipFamilies[%d]`", want, i))
		}
	}
}
