// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// podNames is what the names of controllers of Pods are used for.
const podNames = "Pod names and hostnames"

// ruleOf returns the rule of a kind. Most have one in their group's function.
func ruleOf(kind schema.GroupVersionKind) rule {
	switch kind.GroupVersion().String() {
	case "v1":
		return core(kind.Kind)
	case "apps/v1", "batch/v1":
		return workload(kind.Kind)
	case "rbac.authorization.k8s.io/v1":
		return access(kind.Kind)
	case "admissionregistration.k8s.io/v1":
		return admission(kind.Kind)
	case "autoscaling/v1":
		if kind.Kind == "Scale" {
			return of[autoscalingv1.Scale]{}.plain()
		}
		return of[autoscalingv1.HorizontalPodAutoscaler]{fill: func(h *autoscalingv1.HorizontalPodAutoscaler) { initial(&h.Spec.MinReplicas, 1) }}.plain()
	case "autoscaling/v2":
		return of[autoscalingv2.HorizontalPodAutoscaler]{fill: fillAutoscaler, check: checkAutoscaler}.plain()
	case "certificates.k8s.io/v1":
		return of[certificatesv1.CertificateSigningRequest]{keep: keepRequest, check: checkRequest}.plain()
	case "coordination.k8s.io/v1":
		return of[coordinationv1.Lease]{domainless: true, begin: beginLease, keep: keepLease, check: checkLease}.plain()
	case "discovery.k8s.io/v1":
		return of[discoveryv1.EndpointSlice]{fill: fillEndpointSlice}.plain()
	case "events.k8s.io/v1":
		return of[eventsv1.Event]{check: checkNewEvent}.plain()
	case "policy/v1":
		return of[policyv1.PodDisruptionBudget]{name: roleName, domainless: true, late: true, check: checkBudget}.plain()
	case "scheduling.k8s.io/v1":
		return of[schedulingv1.PriorityClass]{fill: fillPriorityClass, check: checkPriorityClass}.plain()
	}
	return other(kind.GroupKind().String())
}

// core returns the rule of a kind of the core group.
func core(kind string) rule {
	switch kind {
	case "ConfigMap":
		return of[corev1.ConfigMap]{renamed: true, fill: fillConfigMap, check: checkConfigMap}.plain()
	case "Endpoints":
		return of[corev1.Endpoints]{renamed: true, fill: fillEndpoints}.plain() //nolint:staticcheck // clients still write them
	case "Event":
		return of[corev1.Event]{check: checkEvent}.plain()
	case "LimitRange":
		return of[corev1.LimitRange]{fill: fillLimitRange}.plain()
	case "Namespace":
		return of[corev1.Namespace]{name: validation.ValidateNamespaceName, fill: fillNamespace, keep: keepNamespace}.plain()
	case "Node":
		return of[corev1.Node]{fill: fillNode, apart: true}.plain()
	case "PersistentVolume":
		return of[corev1.PersistentVolume]{renamed: true, fill: fillPersistentVolume, begin: beginVolume, check: checkPersistentVolume}.plain()
	case "PersistentVolumeClaim":
		return of[corev1.PersistentVolumeClaim]{renamed: true, fill: fillClaim, begin: beginClaim, keep: keepClaim, check: checkClaim, apart: true}.plain()
	case "Pod", "PodTemplate", "ReplicationController":
		return workload(kind)
	case "ResourceQuota":
		return of[corev1.ResourceQuota]{fill: fillQuota}.plain()
	case "Secret":
		return of[corev1.Secret]{renamed: true, fill: fillSecret, check: checkSecret}.plain()
	case "ServiceAccount":
		return of[corev1.ServiceAccount]{renamed: true}.plain()
	case "Service":
		return of[corev1.Service]{
			name: validation.NameIsDNSLabel, fill: fillService, begin: beginService, keep: keepService, allocate: allocateFamilies,
			check: checkService, warn: warnService,
		}.plain()
	}
	return of[any]{}.plain()
}

// workload returns the rule of a kind that is a Pod, or makes some.
func workload(kind string) rule {
	switch kind {
	case "CronJob":
		return of[batchv1.CronJob]{looseStatus: true, names: podNames, fill: fillCronJob, check: checkCronJob, apart: true}.plain()
	case "DaemonSet":
		return of[appsv1.DaemonSet]{fill: fillDaemonSet, begin: beginDaemonSet, keep: keepDaemonSet, check: checkDaemonSet, status: checkDaemonSetStatus}.plain()
	case "Deployment":
		return of[appsv1.Deployment]{names: podNames, fill: fillDeployment, check: checkDeployment, status: checkDeploymentStatus, apart: true}.plain()
	case "Job":
		return of[batchv1.Job]{names: podNames, fill: fillJob, decoded: labelJob, begin: beginJob, check: checkJob}.plain()
	case "Pod":
		return of[corev1.Pod]{renamed: true, names: "the Pod's hostname", fill: fillPod, begin: beginPod, check: checkPod, part: checkPodPart, apart: true}.plain()
	case "PodTemplate":
		return of[corev1.PodTemplate]{fill: func(t *corev1.PodTemplate) { fillPodSpec(&t.Template.Spec) }}.plain()
	case "ReplicationController":
		return of[corev1.ReplicationController]{names: podNames, fill: fillController, check: checkController, status: checkControllerStatus}.plain()
	case "ReplicaSet":
		return of[appsv1.ReplicaSet]{names: podNames, fill: fillReplicaSet, check: checkReplicaSet, status: checkReplicaSetStatus, apart: true}.plain()
	case "StatefulSet":
		return of[appsv1.StatefulSet]{name: validation.NameIsDNSLabel, fill: fillStatefulSet, check: checkStatefulSet, status: checkSetStatus, apart: true}.plain()
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

func admission(kind string) rule {
	switch kind {
	case "MutatingAdmissionPolicy":
		return of[admissionv1.MutatingAdmissionPolicy]{domainless: true, fill: fillMutatingPolicy, check: checkMutatingPolicy}.plain()
	case "MutatingAdmissionPolicyBinding":
		return of[admissionv1.MutatingAdmissionPolicyBinding]{domainless: true, fill: fillMutatingBinding, check: checkMutatingBinding}.plain()
	case "MutatingWebhookConfiguration":
		return of[admissionv1.MutatingWebhookConfiguration]{domainless: true, fill: fillMutating, check: checkMutating}.plain()
	case "ValidatingAdmissionPolicy":
		return of[admissionv1.ValidatingAdmissionPolicy]{domainless: true, fill: fillPolicy, check: checkPolicy}.plain()
	case "ValidatingAdmissionPolicyBinding":
		return of[admissionv1.ValidatingAdmissionPolicyBinding]{domainless: true, fill: fillPolicyBinding, check: checkPolicyBinding}.plain()
	case "ValidatingWebhookConfiguration":
		return of[admissionv1.ValidatingWebhookConfiguration]{domainless: true, fill: fillValidating, check: checkValidating}.plain()
	}
	return of[any]{}.plain()
}

func other(kind string) rule {
	switch kind {
	case "CSIDriver.storage.k8s.io":
		return of[storagev1.CSIDriver]{fill: fillCSIDriver, warn: warnCSIDriver}.plain()
	case "Ingress.networking.k8s.io":
		return of[networkingv1.Ingress]{renamed: true, check: checkIngress}.plain()
	case "IngressClass.networking.k8s.io":
		return of[networkingv1.IngressClass]{fill: fillIngressClass}.plain()
	case "NetworkPolicy.networking.k8s.io":
		return of[networkingv1.NetworkPolicy]{fill: fillNetworkPolicy, check: checkNetworkPolicy}.plain()
	case "StorageClass.storage.k8s.io":
		return of[storagev1.StorageClass]{fill: fillStorageClass, check: checkStorageClass}.plain()
	}
	return of[any]{}.plain()
}
