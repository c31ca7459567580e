// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// scheduler is the field manager of the scheduler.
const scheduler = "kube-scheduler"

// schedule puts a Pod on a node as soon as its volumes are there, unless the Pod has another scheduler or a gate.
func (l *loop) schedule(p *corev1.Pod, rule Rule) error {
	if name := p.Spec.SchedulerName; name != "" && name != corev1.DefaultSchedulerName || len(p.Spec.SchedulingGates) > 0 {
		return nil
	}
	node := ""
	why := "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."
	if l.bound(p) {
		node, why = l.nodeFor(p), "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
	}
	if node == "" || rule.Fail == corev1.PodReasonUnschedulable {
		next := p.Status.DeepCopy()
		next.Phase = corev1.PodPending
		if !isUnschedulable(p, why) {
			l.events.record(l.ctx, p, happening{component: defaultScheduler, kind: corev1.EventTypeWarning, reason: "FailedScheduling", action: "Scheduling", message: why})
		}
		setCondition(next, l.now(), corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, why)
		return l.status("Pod", p, scheduler, p.Status, *next)
	}
	_, err := l.link.create(l.ctx, l.row("Pod").path(p.Namespace, p.Name, "binding"), scheduler, corev1.Binding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Binding"},
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, UID: p.UID},
		Target:     corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node},
	})
	if err != nil {
		return err
	}
	l.events.record(l.ctx, p, happening{
		component: defaultScheduler, kind: corev1.EventTypeNormal, reason: "Scheduled", action: "Binding",
		message: fmt.Sprintf("Successfully assigned %s/%s to %s", p.Namespace, p.Name, node),
	})
	l.shown("Pod", p)
	return nil
}

// isUnschedulable reports whether a Pod says that it gets no node, and why.
func isUnschedulable(p *corev1.Pod, why string) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Message == why
	})
}

// nodeFor chooses a node for a Pod: the one that its affinity names, as that of a DaemonSet's Pod does, or one that is not
// cordoned. Empty means that no node takes the Pod.
func (l *loop) nodeFor(p *corev1.Pod) string {
	var fit []string
	for _, n := range listOf[*corev1.Node](l.caches["Node"].all()) {
		if wanted, must := affinityOf(p); matchesNode(p, n) && (must && wanted == n.Name || !must && !n.Spec.Unschedulable) {
			fit = append(fit, n.Name)
		}
	}
	if len(fit) == 0 {
		return ""
	}
	h := fnv.New32a()
	h.Write([]byte(p.UID))
	return fit[int(h.Sum32())%len(fit)]
}

// matchesNode reports whether the selector of a Pod matches a node, and whether it tolerates the node's taints.
func matchesNode(p *corev1.Pod, n *corev1.Node) bool {
	for name, value := range p.Spec.NodeSelector {
		if n.Labels[name] != value {
			return false
		}
	}
	return !slices.ContainsFunc(n.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Effect != corev1.TaintEffectPreferNoSchedule && !slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool {
			return t.ToleratesTaint(logr.Discard(), &taint, false)
		})
	})
}

// affinityOf returns the node that the affinity of a DaemonSet's Pod names.
func affinityOf(p *corev1.Pod) (node string, must bool) {
	if p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil || p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return "", false
	}
	for _, term := range p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, f := range term.MatchFields {
			if f.Key == metav1.ObjectNameField && len(f.Values) == 1 {
				return f.Values[0], true
			}
		}
	}
	return "", false
}

// bound reports whether all claims of a Pod are bound. If not, the Pod is queued when the next one is.
func (l *loop) bound(p *corev1.Pod) bool {
	for _, name := range claimsOf(p) {
		claim, _ := l.caches["PersistentVolumeClaim"].get(p.Namespace, name).(*corev1.PersistentVolumeClaim)
		if claim == nil || claim.Status.Phase != corev1.ClaimBound {
			k, pod := key{"PersistentVolumeClaim", p.Namespace, name}, key{"Pod", p.Namespace, p.Name}
			if !slices.Contains(l.awaited[k], pod) {
				l.awaited[k] = append(l.awaited[k], pod)
			}
			return false
		}
	}
	return true
}

// release queues the Pods that have waited for a claim.
func (l *loop) release(claim *corev1.PersistentVolumeClaim) {
	k := key{"PersistentVolumeClaim", claim.Namespace, claim.Name}
	for _, p := range l.awaited[k] {
		l.queue.add(p)
	}
	delete(l.awaited, k)
}

func claimsOf(p *corev1.Pod) (out []string) {
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			out = append(out, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return out
}

// end ends a Pod that is being deleted, after its rule's delay and at most its grace period.
func (l *loop) end(p *corev1.Pod, rule Rule) error {
	delay := rule.Delay
	if at := p.DeletionTimestamp; p.DeletionGracePeriodSeconds != nil {
		delay = min(delay, at.Sub(l.now().Time))
	}
	if delay > 0 && !l.waited("Pod", p, "end", rule.Delay) {
		l.later("Pod", p, delay)
		return nil
	}
	if p.DeletionGracePeriodSeconds != nil && *p.DeletionGracePeriodSeconds == 0 {
		return nil // a finalizer holds it
	}
	for _, c := range p.Spec.Containers {
		l.events.record(l.ctx, p, happening{component: kubelet, kind: corev1.EventTypeNormal, reason: "Killing", message: "Stopping container " + c.Name, field: fieldOf(c.Name)})
	}
	err := l.delete("Pod", p, new(int64))
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
