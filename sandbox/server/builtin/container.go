// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkContainers checks the containers of a Pod.
func checkContainers(f *findings, path *field.Path, s *corev1.PodSpec, volumes map[string]bool) {
	if len(s.Containers) == 0 {
		f.required(path, "")
		return
	}
	names := map[string]bool{}
	for i := range s.Containers {
		c, at := &s.Containers[i], path.Index(i)
		checkContainer(f, at, c, volumes)
		if names[c.Name] {
			f.duplicate(at.Child("name"), c.Name)
		}
		names[c.Name] = true
		checkHooks(f, at, c)
	}
	checkHostPorts(f, path, s.Containers)
}

// checkInitContainers checks the init containers of a Pod.
func checkInitContainers(f *findings, path *field.Path, s *corev1.PodSpec, volumes map[string]bool) {
	names := map[string]bool{}
	for _, c := range s.Containers {
		names[c.Name] = true
	}
	for i := range s.InitContainers {
		c, at := &s.InitContainers[i], path.Index(i)
		checkContainer(f, at, c, volumes)
		if names[c.Name] {
			f.duplicate(at.Child("name"), c.Name)
		}
		names[c.Name] = c.Name != ""
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			checkHooks(f, at, c)
			continue
		}
		const why = "may not be set for init containers without restartPolicy=Always"
		for _, each := range []struct {
			name string
			set  bool
		}{
			{"lifecycle", c.Lifecycle != nil}, {"livenessProbe", c.LivenessProbe != nil},
			{"readinessProbe", c.ReadinessProbe != nil}, {"startupProbe", c.StartupProbe != nil},
		} {
			if each.set {
				f.forbidden(at.Child(each.name), why)
			}
		}
	}
}

// checkContainer checks what all containers have.
func checkContainer(f *findings, path *field.Path, c *corev1.Container, volumes map[string]bool) {
	if f.filled(path.Child("name"), c.Name) {
		f.each(path.Child("name"), c.Name, utilvalidation.IsDNS1123Label(c.Name))
	}
	f.filled(path.Child("image"), c.Image)
	oneOf(f, path.Child("terminationMessagePolicy"), c.TerminationMessagePolicy,
		corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)
	checkPorts(f, path.Child("ports"), c.Ports)
	checkEnv(f, path, c)
	checkMounts(f, path.Child("volumeMounts"), c.VolumeMounts, volumes)
	oneOf(f, path.Child("imagePullPolicy"), c.ImagePullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
	checkResources(f, path.Child("resources"), c.Resources)
	checkContainerSecurity(f, path.Child("securityContext"), c.SecurityContext)
}

// checkPorts checks the ports of a container.
func checkPorts(f *findings, path *field.Path, ports []corev1.ContainerPort) {
	names := map[string]bool{}
	for i, p := range ports {
		at := path.Index(i)
		if p.Name != "" {
			wrong := utilvalidation.IsValidPortName(p.Name)
			f.each(at.Child("name"), p.Name, wrong)
			if len(wrong) == 0 && names[p.Name] {
				f.duplicate(at.Child("name"), p.Name)
			}
			names[p.Name] = true
		}
		if p.ContainerPort == 0 {
			f.required(at.Child("containerPort"), "")
		} else {
			checkPort(f, at.Child("containerPort"), p.ContainerPort)
		}
		if p.HostPort != 0 {
			checkPort(f, at.Child("hostPort"), p.HostPort)
		}
		checkProtocol(f, at.Child("protocol"), p.Protocol)
	}
}

// checkPort checks the number of a port.
func checkPort(f *findings, path *field.Path, port int32) {
	f.each(path, port, utilvalidation.IsValidPortNum(int(port)))
}

func checkProtocol(f *findings, path *field.Path, p corev1.Protocol) {
	oneOf(f, path, p, corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)
}

// checkHostPorts checks that no two containers have the same port of the node.
func checkHostPorts(f *findings, path *field.Path, containers []corev1.Container) {
	used := map[string]bool{}
	for i := range containers {
		for j, p := range containers[i].Ports {
			if p.HostPort == 0 {
				continue
			}
			key := fmt.Sprintf("%s/%s/%d", p.Protocol, p.HostIP, p.HostPort)
			if used[key] {
				f.duplicate(path.Index(i).Child("ports").Index(j).Child("hostPort"), key)
			}
			used[key] = true
		}
	}
}

// checkMounts checks the mounts of a container against the volumes of its Pod.
func checkMounts(f *findings, path *field.Path, mounts []corev1.VolumeMount, volumes map[string]bool) {
	paths := map[string]bool{}
	for i, m := range mounts {
		at := path.Index(i)
		f.filled(at.Child("name"), m.Name)
		if !volumes[m.Name] {
			f.list = append(f.list, field.NotFound(at.Child("name"), m.Name))
		}
		f.filled(at.Child("mountPath"), m.MountPath)
		if paths[m.MountPath] {
			f.invalid(at.Child("mountPath"), m.MountPath, "must be unique")
		}
		paths[m.MountPath] = true
		if m.SubPath != "" {
			checkRelative(f, path.Child("subPath"), m.SubPath)
		}
		if m.SubPathExpr == "" {
			continue
		}
		if m.SubPath != "" {
			f.invalid(at.Child("subPathExpr"), m.SubPathExpr, "subPathExpr and subPath are mutually exclusive")
		}
		checkRelative(f, path.Child("subPathExpr"), m.SubPathExpr)
	}
}
