// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// notReady is how many seconds a Pod stays on a node that is not ready, unless the Pod says it.
const notReady = 300

// tolerations lets a Pod stay for some time on a node that is not ready. It does so at each change of a spec, too: a template that
// lists tolerations replaces the added ones.
func tolerations() step {
	return step{complete: onPod(func(_ *call, pod, _ *corev1.Pod) error {
		s := &pod.Spec
		given := slices.Clone(s.Tolerations)
		for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
			tolerated := slices.ContainsFunc(given, func(t corev1.Toleration) bool {
				return (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
			})
			if !tolerated {
				s.Tolerations = append(s.Tolerations, corev1.Toleration{
					Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(notReady)),
				})
			}
		}
		return nil
	})}
}
