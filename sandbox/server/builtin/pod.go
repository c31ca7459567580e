// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkTemplate checks the template of Pods.
func checkTemplate(f *findings, path *field.Path, t *corev1.PodTemplateSpec) {
	f.add(metav1validation.ValidateLabels(t.Labels, path.Child("labels")))
	f.add(validation.ValidateAnnotations(t.Annotations, path.Child("annotations")))
	checkPodSpec(f, path.Child("spec"), &t.Spec)
	if len(t.Spec.EphemeralContainers) > 0 {
		f.forbidden(path.Child("spec", "ephemeralContainers"), "ephemeral containers not allowed in pod template")
	}
}

// checkPodSpec checks what Pods and templates of Pods share.
func checkPodSpec(f *findings, path *field.Path, s *corev1.PodSpec) {
	volumes := checkVolumes(f, path.Child("volumes"), s.Volumes)
	checkContainers(f, path.Child("containers"), s, volumes)
	checkInitContainers(f, path.Child("initContainers"), s, volumes)
	checkEphemeralContainers(f, path.Child("ephemeralContainers"), s, volumes)
	oneOf(f, path.Child("restartPolicy"), s.RestartPolicy, corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	oneOf(f, path.Child("dnsPolicy"), s.DNSPolicy,
		corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)
	f.add(metav1validation.ValidateLabels(s.NodeSelector, path.Child("nodeSelector")))
	checkSecurity(f, path.Child("securityContext"), s.SecurityContext)
	for i, secret := range s.ImagePullSecrets {
		f.filled(path.Child("imagePullSecrets").Index(i).Child("name"), secret.Name)
	}
	checkAffinity(f, path.Child("affinity"), s.Affinity)
	checkNames(f, path.Child("dnsConfig"), s)
	checkSpread(f, path.Child("topologySpreadConstraints"), s.TopologySpreadConstraints)
	checkPodNames(f, path, s)
	checkTolerations(f, path.Child("tolerations"), s.Tolerations)
	if s.PriorityClassName != "" {
		f.each(path.Child("priorityClassName"), s.PriorityClassName, validation.NameIsDNSSubdomain(s.PriorityClassName, false))
	}
	if s.RuntimeClassName != nil {
		f.each(path.Child("runtimeClassName"), *s.RuntimeClassName, validation.NameIsDNSSubdomain(*s.RuntimeClassName, false))
	}
	supportedIf(f, path.Child("preemptionPolicy"), s.PreemptionPolicy, corev1.PreemptLowerPriority, corev1.PreemptNever)
}

// checkNames checks that a Pod without the cluster's names has others.
func checkNames(f *findings, path *field.Path, s *corev1.PodSpec) {
	switch {
	case s.DNSPolicy != corev1.DNSNone:
	case s.DNSConfig == nil:
		f.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
	case len(s.DNSConfig.Nameservers) == 0:
		f.required(path.Child("nameservers"), "must provide at least one DNS nameserver when `dnsPolicy` is None")
	}
}

// checkPodNames checks the names in a Pod's spec, and its deadline, which comes among them.
func checkPodNames(f *findings, path *field.Path, s *corev1.PodSpec) {
	if s.ServiceAccountName != "" {
		f.each(path.Child("serviceAccountName"), s.ServiceAccountName, validation.ValidateServiceAccountName(s.ServiceAccountName, false))
	}
	if s.NodeName != "" {
		f.each(path.Child("nodeName"), s.NodeName, validation.NameIsDNSSubdomain(s.NodeName, false))
	}
	if limit := s.ActiveDeadlineSeconds; limit != nil && (*limit < 1 || *limit > math.MaxInt32) {
		f.invalid(path.Child("activeDeadlineSeconds"), *limit, utilvalidation.InclusiveRangeError(1, math.MaxInt32))
	}
	if s.Hostname != "" {
		f.each(path.Child("hostname"), s.Hostname, utilvalidation.IsDNS1123Label(s.Hostname))
	}
	if s.Subdomain != "" {
		f.each(path.Child("subdomain"), s.Subdomain, utilvalidation.IsDNS1123Label(s.Subdomain))
	}
}

// checkPod checks a Pod.
func checkPod(f *findings, next, old *corev1.Pod) {
	checkPodSpec(f, spec(), &next.Spec)
	notNegativeIf(f, spec().Child("terminationGracePeriodSeconds"), next.Spec.TerminationGracePeriodSeconds)
	if old == nil {
		if len(next.Spec.EphemeralContainers) > 0 {
			f.forbidden(spec().Child("ephemeralContainers"), "cannot be set on create")
		}
		return
	}
	checkPodChange(f, next, old)
}

// restartsAlways checks that the Pods of a controller run without end.
func restartsAlways(f *findings, path *field.Path, s *corev1.PodSpec, kind string) {
	if s.RestartPolicy != corev1.RestartPolicyAlways {
		supported(f, path.Child("restartPolicy"), s.RestartPolicy, corev1.RestartPolicyAlways)
	}
	if s.ActiveDeadlineSeconds != nil {
		f.forbidden(path.Child("activeDeadlineSeconds"), "activeDeadlineSeconds in "+kind+" is not Supported")
	}
}
