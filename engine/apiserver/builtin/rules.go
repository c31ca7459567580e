// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// rule returns the rule of a kind.
func (k *Kinds) rule(kind schema.GroupVersionKind) rule {
	switch kind.GroupVersion().String() {
	case "v1":
		return k.core(kind.Kind)
	case "apps/v1":
		return apps(kind.Kind)
	case "batch/v1":
		return batch(kind.Kind)
	case "networking.k8s.io/v1":
		return networking(kind.Kind)
	case "rbac.authorization.k8s.io/v1":
		return access(kind.Kind)
	}
	return of[any]{}.plain()
}

// core returns the rule of a kind of the core group.
func (k *Kinds) core(kind string) rule {
	switch kind {
	case "ConfigMap":
		return of[corev1.ConfigMap]{fill: fillConfigMap, check: checkConfigMap}.plain()
	case "PersistentVolume":
		return of[corev1.PersistentVolume]{fill: fillPersistentVolume, check: checkPersistentVolume}.plain()
	case "PersistentVolumeClaim":
		return of[corev1.PersistentVolumeClaim]{fill: fillClaim, check: checkClaim}.plain()
	case "Pod":
		return of[corev1.Pod]{fill: fillPod, begin: beginPod, check: checkPod}.plain()
	case "ReplicationController":
		return of[corev1.ReplicationController]{fill: fillController}.plain()
	case "Secret":
		return of[corev1.Secret]{fill: fillSecret, check: checkSecret}.plain()
	case "Service":
		return of[corev1.Service]{name: serviceName, fill: fillService, begin: k.addresses.begin, keep: k.addresses.keep, check: checkService}.plain()
	case "Namespace":
		return of[corev1.Namespace]{name: validation.ValidateNamespaceName}.plain()
	}
	return of[any]{}.plain()
}

func apps(kind string) rule {
	switch kind {
	case "DaemonSet":
		return of[appsv1.DaemonSet]{fill: fillDaemonSet, check: checkDaemonSet}.plain()
	case "Deployment":
		return of[appsv1.Deployment]{fill: fillDeployment, check: checkDeployment}.plain()
	case "ReplicaSet":
		return of[appsv1.ReplicaSet]{fill: fillReplicaSet, check: checkReplicaSet}.plain()
	case "StatefulSet":
		return of[appsv1.StatefulSet]{name: validation.NameIsDNSLabel, fill: fillStatefulSet, check: checkStatefulSet}.plain()
	}
	return of[any]{}.plain()
}

func batch(kind string) rule {
	switch kind {
	case "CronJob":
		return of[batchv1.CronJob]{fill: fillCronJob, check: checkCronJob}.plain()
	case "Job":
		return of[batchv1.Job]{fill: fillJob, begin: beginJob, check: checkJob}.plain()
	}
	return of[any]{}.plain()
}

func networking(kind string) rule {
	switch kind {
	case "Ingress":
		return of[networkingv1.Ingress]{check: checkIngress}.plain()
	case "NetworkPolicy":
		return of[networkingv1.NetworkPolicy]{fill: fillNetworkPolicy, check: checkNetworkPolicy}.plain()
	}
	return of[any]{}.plain()
}

func access(kind string) rule {
	switch kind {
	case "ClusterRole":
		return of[rbacv1.ClusterRole]{name: roleName, check: func(f *findings, next, _ *rbacv1.ClusterRole) { checkRules(f, next.Rules, false) }}.plain()
	case "ClusterRoleBinding":
		return of[rbacv1.ClusterRoleBinding]{
			name: roleName, fill: func(b *rbacv1.ClusterRoleBinding) { fillBinding(&b.RoleRef, b.Subjects) }, check: checkClusterRoleBinding,
		}.plain()
	case "Role":
		return of[rbacv1.Role]{name: roleName, check: func(f *findings, next, _ *rbacv1.Role) { checkRules(f, next.Rules, true) }}.plain()
	case "RoleBinding":
		return of[rbacv1.RoleBinding]{
			name: roleName, fill: func(b *rbacv1.RoleBinding) { fillBinding(&b.RoleRef, b.Subjects) }, check: checkRoleBinding,
		}.plain()
	}
	return of[any]{}.plain()
}
