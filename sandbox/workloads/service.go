// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// stepService gives a Service its cluster IP, unless the server has, the endpoints of its Pods, and the address of its load balancer.
func stepService(l *loop, s *corev1.Service, rule Rule) error {
	if s.DeletionTimestamp != nil {
		return nil
	}
	if s.Spec.ClusterIP == "" && s.Spec.Type != corev1.ServiceTypeExternalName {
		ip := l.services.next()
		return l.patch("Service", s, controllers, map[string]any{"spec": map[string]any{"clusterIP": ip, "clusterIPs": []any{ip}}})
	}
	if err := l.publish(s); err != nil {
		return err
	}
	next := s.Status.DeepCopy()
	switch {
	case s.Spec.Type != corev1.ServiceTypeLoadBalancer:
		next.LoadBalancer = corev1.LoadBalancerStatus{}
	case s.Spec.LoadBalancerClass != nil || len(next.LoadBalancer.Ingress) > 0 && rule.Fail == "":
		// It has an address, or another controller gives it one.
		return nil
	case rule.Fail != "":
		next.LoadBalancer = corev1.LoadBalancerStatus{}
	case l.waited("Service", s, "address", rule.Delay):
		mode := corev1.LoadBalancerIPModeVIP
		next.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: l.balancers.next(), IPMode: &mode}}
	}
	return l.status("Service", s, controllers, s.Status, *next)
}

// stepIngress gives an Ingress an address.
func stepIngress(l *loop, i *networkingv1.Ingress, rule Rule) error {
	next := i.Status.DeepCopy()
	switch {
	case i.DeletionTimestamp != nil || len(next.LoadBalancer.Ingress) > 0 && rule.Fail == "":
		return nil
	case rule.Fail != "":
		next.LoadBalancer = networkingv1.IngressLoadBalancerStatus{}
	case l.waited("Ingress", i, "address", rule.Delay):
		next.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: l.balancers.next()}}
	}
	return l.status("Ingress", i, controllers, i.Status, *next)
}
