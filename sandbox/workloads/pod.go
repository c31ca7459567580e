// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stepPod brings a Pod onto a node, and then to what its rule says.
func stepPod(l *loop, p *corev1.Pod, rule Rule) error {
	switch {
	case p.DeletionTimestamp != nil:
		return l.end(p, rule)
	case finished(p):
		return nil
	case p.Spec.NodeName == "":
		return l.schedule(p, rule)
	}
	next := p.Status.DeepCopy()
	l.advance(p, next, rule)
	if err := l.status("Pod", p, kubelet, p.Status, *next); err != nil {
		return err
	}
	l.tellStarts(p, next)
	return nil
}

// tellStarts records Events about containers that have started, or cannot.
func (l *loop) tellStarts(p *corev1.Pod, next *corev1.PodStatus) {
	if l.events == nil {
		return
	}
	for i, c := range next.ContainerStatuses {
		var was corev1.ContainerState
		if i < len(p.Status.ContainerStatuses) {
			was = p.Status.ContainerStatuses[i].State
		}
		h := happening{component: kubelet, kind: corev1.EventTypeNormal, reason: "Started", message: "Container started", field: fieldOf(c.Name)}
		waits := c.State.Waiting
		switch {
		case waits == nil && was.Running == nil && was.Terminated == nil:
		case waits != nil && waits.Reason != creating && (was.Waiting == nil || was.Waiting.Reason != waits.Reason):
			h.kind, h.reason, h.message = corev1.EventTypeWarning, "Failed", "Error: "+waits.Reason
			if waits.Reason == "CrashLoopBackOff" {
				h.reason, h.message = "BackOff", "Back-off restarting failed container "+c.Name+" in pod "+p.Name
			}
		default:
			continue
		}
		l.events.record(l.ctx, p, h)
	}
}

// fieldOf returns the part of a Pod that an Event about one of its containers names.
func fieldOf(container string) string { return "spec.containers{" + container + "}" }

// holdPod leaves a Pod as it is. A new one is Pending: a server with schemas says so when it is created, with the class of quality.
func holdPod(l *loop, o object) error {
	p := o.(*corev1.Pod)
	next := p.Status.DeepCopy()
	if next.Phase == "" && next.QOSClass == "" {
		next.Phase = corev1.PodPending
	}
	return l.status("Pod", p, kubelet, p.Status, *next)
}

// hostAddress is that of all nodes.
const hostAddress = "172.18.0.2"

// advance writes into a status what the kubelet reports next.
func (l *loop) advance(p *corev1.Pod, s *corev1.PodStatus, rule Rule) {
	if s.StartTime == nil {
		start := l.now()
		s.StartTime = &start
	}
	s.HostIP, s.HostIPs = hostAddress, []corev1.HostIP{{IP: hostAddress}}
	if p.Generation > 0 {
		s.ObservedGeneration = p.Generation
	}
	if s.QOSClass == "" {
		s.QOSClass = qosOf(p)
	}
	setCondition(s, l.now(), corev1.PodScheduled, corev1.ConditionTrue, "", "")
	f := fateOf(p, rule)
	// A Pod that runs stays so when a delay is set later.
	if f.delayed && (completes(p) || s.Phase != corev1.PodRunning) && !l.waited("Pod", p, "ready", rule.Delay) {
		f = fate{phase: corev1.PodPending, waiting: creating}
		if completes(p) {
			f = fate{phase: corev1.PodRunning, ready: true}
		}
	}
	s.Phase = f.phase
	if s.PodIP == "" && f.phase != corev1.PodPending {
		s.PodIP = l.pods.next()
		s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	}
	report(p, s, f, l.now())
}

// creating is the reason of a container that is about to run.
const creating = "ContainerCreating"

// fate is what becomes of a Pod.
type fate struct {
	phase corev1.PodPhase
	ready bool
	// waiting is why the containers do not run.
	waiting string
	// crashed: they have ended with an error.
	crashed bool
	// delayed: it takes the rule's delay.
	delayed bool
}

// fateOf returns what becomes of a Pod that is on a node.
func fateOf(p *corev1.Pod, rule Rule) fate {
	ofJob := completes(p)
	switch {
	case rule.Fail == "" && ofJob:
		return fate{phase: corev1.PodSucceeded, delayed: true}
	case rule.Fail == "":
		return fate{phase: corev1.PodRunning, ready: true, delayed: true}
	case ofJob || rule.Fail == "CrashLoopBackOff" && p.Spec.RestartPolicy == corev1.RestartPolicyNever:
		return fate{phase: corev1.PodFailed, crashed: true}
	case rule.Fail == "Unready":
		return fate{phase: corev1.PodRunning}
	case rule.Fail == "CrashLoopBackOff":
		return fate{phase: corev1.PodRunning, waiting: rule.Fail, crashed: true}
	}
	return fate{phase: corev1.PodPending, waiting: rule.Fail}
}

// completes reports whether a Pod ends by itself.
func completes(p *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(p)
	return owner != nil && owner.Kind == "Job"
}

func finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// active reports whether a Pod counts for its controller.
func active(p *corev1.Pod) bool { return p.DeletionTimestamp == nil && !finished(p) }

// readySince returns since when a Pod is ready, or nil.
func readySince(p *corev1.Pod) *metav1.Time {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return &c.LastTransitionTime
		}
	}
	return nil
}

// qosOf returns the class of a Pod by the resources of its containers.
func qosOf(p *corev1.Pod) corev1.PodQOSClass {
	some, all := false, true
	for _, c := range p.Spec.Containers {
		some = some || len(c.Resources.Requests)+len(c.Resources.Limits) > 0
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			limit, limited := c.Resources.Limits[name]
			request, requested := c.Resources.Requests[name]
			all = all && limited && (!requested || request.Cmp(limit) == 0)
		}
	}
	switch {
	case !some:
		return corev1.PodQOSBestEffort
	case all:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}
