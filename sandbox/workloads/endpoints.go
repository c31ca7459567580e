// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Endpoints are deprecated, and clients still read them.
type (
	endpoints       = corev1.Endpoints       //nolint:staticcheck // see above
	endpointSubset  = corev1.EndpointSubset  //nolint:staticcheck // see above
	endpointAddress = corev1.EndpointAddress //nolint:staticcheck // see above
	endpointPort    = corev1.EndpointPort
)

// backend is a group of Pods of a Service that have its ports at the same numbers.
type backend struct {
	ports []discoveryv1.EndpointPort
	pods  []*corev1.Pod
}

// publish keeps the EndpointSlices and the Endpoints of a Service with a selector.
func (l *loop) publish(s *corev1.Service) error {
	if !l.allKinds || len(s.Spec.Selector) == 0 || s.Spec.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	backends := l.backends(s)
	if err := l.publishSlices(s, backends); err != nil {
		return err
	}
	return l.publishEndpoints(s, backends)
}

// backends returns the Pods of a Service that have an address, in the order of these.
func (l *loop) backends(s *corev1.Service) (out []backend) {
	var pods []*corev1.Pod
	for _, p := range listOf[*corev1.Pod](l.caches["Pod"].in(s.Namespace)) {
		if p.Status.PodIP != "" && !finished(p) && serves(s, p) {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return addressOf(a).Compare(addressOf(b)) })
	for _, p := range pods {
		ports := portsOf(s, p)
		i := slices.IndexFunc(out, func(b backend) bool { return equality.Semantic.DeepEqual(b.ports, ports) })
		if i < 0 {
			i, out = len(out), append(out, backend{ports: ports})
		}
		out[i].pods = append(out[i].pods, p)
	}
	return out
}

// serves reports whether a Service selects a Pod.
func serves(s *corev1.Service, p *corev1.Pod) bool {
	return len(s.Spec.Selector) > 0 && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(p.Labels))
}

func addressOf(p *corev1.Pod) netip.Addr {
	out, _ := netip.ParseAddr(p.Status.PodIP) // one that is wrong comes first
	return out
}

// portsOf returns the ports of a Service at a Pod. A port whose name no container has is left out.
func portsOf(s *corev1.Service, p *corev1.Pod) []discoveryv1.EndpointPort {
	out := []discoveryv1.EndpointPort{}
	for _, port := range s.Spec.Ports {
		number := port.TargetPort.IntVal
		if port.TargetPort.Type == intstr.String {
			number = namedPort(p, port.TargetPort.StrVal, port.Protocol)
		} else if number == 0 {
			number = port.Port
		}
		if number != 0 {
			out = append(out, discoveryv1.EndpointPort{Name: &port.Name, Port: &number, Protocol: &port.Protocol, AppProtocol: port.AppProtocol})
		}
	}
	return out
}

// namedPort returns the port of a name, or 0.
func namedPort(p *corev1.Pod, name string, protocol corev1.Protocol) int32 {
	for _, c := range slices.Concat(p.Spec.Containers, p.Spec.InitContainers) {
		for _, port := range c.Ports {
			if port.Name == name && port.Protocol == protocol {
				return port.ContainerPort
			}
		}
	}
	return 0
}

// endpointsManager is what the label says of who keeps Endpoints.
const endpointsManager = "endpoint-controller"

// publishEndpoints keeps the Endpoints of a Service.
func (l *loop) publishEndpoints(s *corev1.Service, backends []backend) error {
	next := &endpoints{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.Namespace, Name: s.Name, Labels: with(headlessLabel(s), "endpoints.kubernetes.io/managed-by", endpointsManager), Annotations: l.triggered(),
	}}
	for _, b := range backends {
		if subset := b.subset(s.Spec.PublishNotReadyAddresses); len(subset.Addresses)+len(subset.NotReadyAddresses) > 0 {
			next.Subsets = append(next.Subsets, subset)
		}
	}
	old, _ := l.caches["Endpoints"].get(s.Namespace, s.Name).(*endpoints)
	switch {
	case old == nil:
		return l.create("Endpoints", next, controllers)
	case equality.Semantic.DeepEqual(old.Subsets, next.Subsets) && equality.Semantic.DeepEqual(old.Labels, next.Labels):
		return nil
	}
	return l.patch("Endpoints", old, controllers, map[string]any{
		"metadata": map[string]any{"labels": changedLabels(old.Labels, next.Labels), "annotations": next.Annotations}, "subsets": next.Subsets,
	})
}

// subset returns the addresses of Pods in the form of Endpoints.
func (b backend) subset(unready bool) (out endpointSubset) {
	for _, p := range b.pods {
		address := endpointAddress{
			IP: p.Status.PodIP, NodeName: &p.Spec.NodeName,
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID},
		}
		switch {
		case p.DeletionTimestamp != nil && !unready:
		case unready || readySince(p) != nil:
			out.Addresses = append(out.Addresses, address)
		default:
			out.NotReadyAddresses = append(out.NotReadyAddresses, address)
		}
	}
	for _, port := range b.ports {
		out.Ports = append(out.Ports, endpointPort{Name: *port.Name, Port: *port.Port, Protocol: *port.Protocol, AppProtocol: port.AppProtocol})
	}
	return out
}

// withdraw deletes the Endpoints of a Service that is gone. Its EndpointSlices are garbage.
func (l *loop) withdraw(k key) error {
	old, found := l.caches["Endpoints"].get(k.namespace, k.name).(*endpoints)
	if !found || old.DeletionTimestamp != nil || old.Labels["endpoints.kubernetes.io/managed-by"] != endpointsManager {
		return nil
	}
	return l.delete("Endpoints", old, nil)
}
