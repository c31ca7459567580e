// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// serviceAccount gives a Pod its ServiceAccount and the image pull secrets of that, and refuses a Pod whose account does not
// exist. It mounts no token: nothing runs in a Pod that could read one.
func serviceAccount() step {
	return step{
		complete: onNewPod(func(c *call, pod *corev1.Pod) error {
			_, mirrors := pod.Annotations[corev1.MirrorPodAnnotationKey]
			if mirrors && pod.Spec.ServiceAccountName != "" {
				return c.forbidden("a mirror pod may not reference service accounts")
			}
			if mirrors {
				return nil
			}
			if pod.Spec.ServiceAccountName == "" {
				pod.Spec.ServiceAccountName = "default"
			}
			pod.Spec.DeprecatedServiceAccount = pod.Spec.ServiceAccountName
			account, err := accountOf(c, pod)
			if err == nil && len(pod.Spec.ImagePullSecrets) == 0 {
				pod.Spec.ImagePullSecrets = slices.Clone(account.ImagePullSecrets)
			}
			return err
		}),
		refuse: onNewPod(func(c *call, pod *corev1.Pod) error { // a webhook may have changed it
			if _, mirrors := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirrors {
				return nil
			}
			_, err := accountOf(c, pod)
			return err
		}),
	}
}

// accountOf returns the ServiceAccount of a Pod. It is an error if there is none.
func accountOf(c *call, pod *corev1.Pod) (*corev1.ServiceAccount, error) {
	name := pod.Spec.ServiceAccountName
	account, err := get[corev1.ServiceAccount](c.objects, schema.GroupResource{Resource: "serviceaccounts"}, c.Namespace, name)
	if err == nil && account == nil {
		missing := apierrors.NewNotFound(schema.GroupResource{Resource: "serviceaccount"}, name)
		return nil, c.forbidden("error looking up service account %s/%s: %w", c.Namespace, name, missing)
	}
	return account, err
}
