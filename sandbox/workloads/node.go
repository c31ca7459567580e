// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// makeNode creates a node that is missing. A kubelet creates it with its status, too.
func (l *loop) makeNode(name string) error {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
	}}}
	if rule := l.plan.of(l.line(n, l.row("Node"))); !rule.Hold {
		n.Status = *statusOfNode(n, rule, l.now())
	}
	return l.create("Node", n, kubelet)
}

// stepNode makes a node ready.
func stepNode(l *loop, n *corev1.Node, rule Rule) error {
	return l.status("Node", n, kubelet, n.Status, *statusOfNode(n, rule, l.now()))
}

// statusOfNode returns the status that a node is to have.
func statusOfNode(n *corev1.Node, rule Rule, now metav1.Time) *corev1.NodeStatus {
	next := n.Status.DeepCopy()
	size := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"), corev1.ResourcePods: resource.MustParse("1000"),
	}
	if next.Capacity == nil {
		next.Capacity, next.Allocatable = size, size
	}
	if next.Addresses == nil {
		next.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: hostAddress}, {Type: corev1.NodeHostName, Address: n.Name}}
	}
	ready, reason, message := corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"
	if rule.Fail != "" {
		ready, reason, message = corev1.ConditionFalse, rule.Fail, "the node has failed"
	}
	setNodeCondition(next, corev1.NodeCondition{
		Type: corev1.NodeReady, Status: ready, Reason: reason, Message: message, LastTransitionTime: now, LastHeartbeatTime: now,
	})
	return next
}

func setNodeCondition(s *corev1.NodeStatus, c corev1.NodeCondition) {
	for i, old := range s.Conditions {
		switch {
		case old.Type != c.Type:
			continue
		case old.Status == c.Status && old.Reason == c.Reason:
			return
		}
		s.Conditions[i] = c
		return
	}
	s.Conditions = append(s.Conditions, c)
}
