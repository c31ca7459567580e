// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// fillPodSpec sets the defaults that Pods and templates of Pods share.
func fillPodSpec(s *corev1.PodSpec) {
	if s.ServiceAccountName == "" {
		s.ServiceAccountName = s.DeprecatedServiceAccount
	}
	s.DeprecatedServiceAccount = s.ServiceAccountName
	orElse(&s.DNSPolicy, corev1.DNSClusterFirst)
	orElse(&s.RestartPolicy, corev1.RestartPolicyAlways)
	orElse(&s.SchedulerName, corev1.DefaultSchedulerName)
	initial(&s.SecurityContext, corev1.PodSecurityContext{})
	initial(&s.TerminationGracePeriodSeconds, int64(corev1.DefaultTerminationGracePeriodSeconds))
	for i := range s.Volumes {
		fillVolume(&s.Volumes[i].VolumeSource)
	}
	for i := range s.InitContainers {
		fillContainer(&s.InitContainers[i])
	}
	for i := range s.Containers {
		fillContainer(&s.Containers[i])
	}
	for i := range s.EphemeralContainers {
		fillContainer((*corev1.Container)(&s.EphemeralContainers[i].EphemeralContainerCommon))
	}
	fillAmounts(s.Overhead)
}

// fillContainer sets the defaults of a container.
func fillContainer(c *corev1.Container) {
	orElse(&c.ImagePullPolicy, pullPolicy(c.Image))
	orElse(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	orElse(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		orElse(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.FieldRef != nil {
			orElse(&from.FieldRef.APIVersion, "v1")
		}
	}
	fillAmounts(c.Resources.Limits)
	fillAmounts(c.Resources.Requests)
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		fillProbe(p)
	}
	if c.Lifecycle == nil {
		return
	}
	for _, h := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
		if h != nil {
			fillGet(h.HTTPGet)
		}
	}
}

// pullPolicy returns the pull policy of an image: one with the tag latest changes.
func pullPolicy(image string) corev1.PullPolicy {
	name, digest, _ := strings.Cut(image, "@")
	last := name[strings.LastIndexByte(name, '/')+1:]
	_, tag, tagged := strings.Cut(last, ":")
	if tag == "latest" || !tagged && digest == "" && image != "" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// fillProbe sets the defaults of a probe, which may be nil.
func fillProbe(p *corev1.Probe) {
	if p == nil {
		return
	}
	for _, each := range []struct {
		at    *int32
		value int32
	}{{&p.TimeoutSeconds, 1}, {&p.PeriodSeconds, 10}, {&p.SuccessThreshold, 1}, {&p.FailureThreshold, 3}} {
		if *each.at == 0 {
			*each.at = each.value
		}
	}
	fillGet(p.HTTPGet)
	if p.GRPC != nil {
		initial(&p.GRPC.Service, "")
	}
}

// fillGet sets the defaults of an HTTP request, which may be nil.
func fillGet(g *corev1.HTTPGetAction) {
	if g != nil {
		orElse(&g.Path, "/")
		orElse(&g.Scheme, corev1.URISchemeHTTP)
	}
}

// fillAmounts rounds quantities up to thousandths, as the API server does.
func fillAmounts(list corev1.ResourceList) {
	for name, amount := range list {
		amount.RoundUp(resource.Milli)
		list[name] = amount
	}
}
