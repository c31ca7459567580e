// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mostEndpoints is how many Pods an EndpointSlice has at most.
const mostEndpoints = 100

// publishSlices keeps the EndpointSlices of a Service. One without Pods has an empty one.
func (l *loop) publishSlices(s *corev1.Service, backends []backend) error {
	var wanted []*discoveryv1.EndpointSlice
	for _, b := range backends {
		for pods := range slices.Chunk(b.pods, mostEndpoints) {
			wanted = append(wanted, l.slice(s, b.ports, pods))
		}
	}
	if len(wanted) == 0 {
		wanted = append(wanted, l.slice(s, nil, nil))
	}
	stored := listOf[*discoveryv1.EndpointSlice](l.caches["EndpointSlice"].of(s.UID))
	for _, next := range wanted {
		i := slices.IndexFunc(stored, func(old *discoveryv1.EndpointSlice) bool { return equality.Semantic.DeepEqual(old.Ports, next.Ports) })
		if i < 0 && len(stored) > 0 && len(wanted) == 1 {
			i = 0 // a Service of one slice keeps it
		}
		if i < 0 {
			if err := l.create("EndpointSlice", next, controllers); err != nil {
				return err
			}
			continue
		}
		if err := l.updateSlice(stored[i], next); err != nil {
			return err
		}
		stored = slices.Delete(stored, i, i+1)
	}
	for _, old := range stored {
		if err := l.delete("EndpointSlice", old, nil); err != nil {
			return err
		}
	}
	return nil
}

// slice returns an EndpointSlice of a Service.
func (l *loop) slice(s *corev1.Service, ports []discoveryv1.EndpointPort, pods []*corev1.Pod) *discoveryv1.EndpointSlice {
	names := with(headlessLabel(s), discoveryv1.LabelServiceName, s.Name)
	names[discoveryv1.LabelManagedBy] = "endpointslice-controller.k8s.io"
	out := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, GenerateName: s.Name + "-", Labels: names, Annotations: l.triggered(), OwnerReferences: ownedBy(s, "Service"),
		},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: ports,
	}
	for _, p := range pods {
		serving, ends := readySince(p) != nil, p.DeletionTimestamp != nil
		ready := s.Spec.PublishNotReadyAddresses || serving && !ends
		endpoint := discoveryv1.Endpoint{
			Addresses: []string{p.Status.PodIP}, NodeName: &p.Spec.NodeName,
			Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &ends},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID},
		}
		if p.Spec.Hostname != "" && p.Spec.Subdomain == s.Name {
			endpoint.Hostname = &p.Spec.Hostname
		}
		out.Endpoints = append(out.Endpoints, endpoint)
	}
	return out
}

// updateSlice writes an EndpointSlice unless it is as it was.
func (l *loop) updateSlice(old, next *discoveryv1.EndpointSlice) error {
	if equality.Semantic.DeepEqual(old.Endpoints, next.Endpoints) && equality.Semantic.DeepEqual(old.Ports, next.Ports) && maps.Equal(old.Labels, next.Labels) {
		return nil
	}
	return l.patch("EndpointSlice", old, controllers, map[string]any{
		"metadata":  map[string]any{"labels": changedLabels(old.Labels, next.Labels), "annotations": next.Annotations},
		"endpoints": next.Endpoints, "ports": next.Ports,
	})
}

// headlessLabel returns the labels of a Service, with the one that says that it has no address of its own.
func headlessLabel(s *corev1.Service) map[string]string {
	out := maps.Clone(s.Labels)
	delete(out, corev1.IsHeadlessService)
	if s.Spec.ClusterIP == corev1.ClusterIPNone {
		out = with(out, corev1.IsHeadlessService, "")
	}
	return out
}

// changedLabels returns labels as a merge patch takes them: those that go are null.
func changedLabels(old, next map[string]string) map[string]any {
	out := map[string]any{}
	for name := range old {
		out[name] = nil
	}
	for name, value := range next {
		out[name] = value
	}
	return out
}

// triggered returns the annotation that says when a Service or one of its Pods has changed.
func (l *loop) triggered() map[string]string {
	return map[string]string{corev1.EndpointsLastChangeTriggerTime: l.now().UTC().Format("2006-01-02T15:04:05Z")}
}
