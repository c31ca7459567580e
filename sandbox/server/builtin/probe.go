// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkHooks checks the lifecycle and the probes of a container.
func checkHooks(f *findings, path *field.Path, c *corev1.Container) {
	if l := c.Lifecycle; l != nil {
		at := path.Child("lifecycle")
		if h := l.PostStart; h != nil {
			checkHandler(f, at.Child("postStart"), handler{h.Exec, h.HTTPGet, h.TCPSocket, nil, h.Sleep})
		}
		if h := l.PreStop; h != nil {
			checkHandler(f, at.Child("preStop"), handler{h.Exec, h.HTTPGet, h.TCPSocket, nil, h.Sleep})
		}
	}
	checkProbe(f, path.Child("livenessProbe"), c.LivenessProbe, true)
	checkProbe(f, path.Child("readinessProbe"), c.ReadinessProbe, false)
	if p := c.ReadinessProbe; p != nil && p.TerminationGracePeriodSeconds != nil {
		f.invalid(path.Child("readinessProbe", "terminationGracePeriodSeconds"), *p.TerminationGracePeriodSeconds, "must not be set for readinessProbes")
	}
	checkProbe(f, path.Child("startupProbe"), c.StartupProbe, true)
}

// checkProbe checks a probe, which may be nil. Some have to succeed only once.
func checkProbe(f *findings, path *field.Path, p *corev1.Probe, once bool) {
	if p == nil {
		return
	}
	checkHandler(f, path, handler{p.Exec, p.HTTPGet, p.TCPSocket, p.GRPC, nil})
	f.notNegative(path.Child("initialDelaySeconds"), int64(p.InitialDelaySeconds))
	f.notNegative(path.Child("timeoutSeconds"), int64(p.TimeoutSeconds))
	f.notNegative(path.Child("periodSeconds"), int64(p.PeriodSeconds))
	f.notNegative(path.Child("successThreshold"), int64(p.SuccessThreshold))
	f.notNegative(path.Child("failureThreshold"), int64(p.FailureThreshold))
	if grace := p.TerminationGracePeriodSeconds; grace != nil && *grace <= 0 {
		f.invalid(path.Child("terminationGracePeriodSeconds"), *grace, "must be greater than 0")
	}
	if once && p.SuccessThreshold != 1 {
		f.invalid(path.Child("successThreshold"), p.SuccessThreshold, "must be 1")
	}
}

// handler is what a probe or a hook does.
type handler struct {
	exec  *corev1.ExecAction
	get   *corev1.HTTPGetAction
	tcp   *corev1.TCPSocketAction
	grpc  *corev1.GRPCAction
	sleep *corev1.SleepAction
}

// checkHandler checks that a handler does one thing, and that.
func checkHandler(f *findings, path *field.Path, h handler) {
	count := 0
	for _, each := range []struct {
		name  string
		set   bool
		check func(*field.Path)
	}{
		{"exec", h.exec != nil, func(at *field.Path) {
			if len(h.exec.Command) == 0 {
				f.required(at.Child("command"), "")
			}
		}},
		{"httpGet", h.get != nil, func(at *field.Path) { checkGet(f, at, h.get) }},
		{"tcpSocket", h.tcp != nil, func(at *field.Path) { checkPortOrName(f, at.Child("port"), h.tcp.Port) }},
		{"grpc", h.grpc != nil, func(at *field.Path) { checkPort(f, at.Child("port"), h.grpc.Port) }},
		{"sleep", h.sleep != nil, func(*field.Path) {}},
	} {
		if !each.set {
			continue
		}
		if count++; count > 1 {
			f.forbidden(path.Child(each.name), "may not specify more than 1 handler type")
			continue
		}
		each.check(path.Child(each.name))
	}
	if count == 0 {
		f.required(path, "must specify a handler type")
	}
}

func checkGet(f *findings, path *field.Path, g *corev1.HTTPGetAction) {
	f.filled(path.Child("path"), g.Path)
	checkPortOrName(f, path.Child("port"), g.Port)
	supported(f, path.Child("scheme"), g.Scheme, corev1.URISchemeHTTP, corev1.URISchemeHTTPS)
	for _, header := range g.HTTPHeaders {
		f.each(path.Child("httpHeaders"), header.Name, utilvalidation.IsHTTPHeaderName(header.Name))
	}
}

// checkPortOrName checks a port that can be named.
func checkPortOrName(f *findings, path *field.Path, port intstr.IntOrString) {
	if port.Type == intstr.Int {
		checkPort(f, path, port.IntVal)
		return
	}
	f.each(path, port.StrVal, utilvalidation.IsValidPortName(port.StrVal))
}
