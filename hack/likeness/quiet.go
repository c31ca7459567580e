// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// stopped names the controllers that a quiet real server does not run: the controllers of workloads and of addresses.
const stopped = `deployment replicaset statefulset daemonset job cronjob replicationcontroller horizontal-pod-autoscaler
	persistentvolume-binder persistentvolume-attach-detach persistentvolume-expander persistentvolumeclaim-protection persistentvolume-protection
	ephemeral-volume ttl-after-finished pod-garbage-collector endpoints endpointslice endpointslice-mirroring resourceclaim`

// quietReal starts a real server in which workloads stay as clients write them. Garbage is collected, namespaces get their content
// and end, and the status of budgets and of quotas is current.
func (s Servers) quietReal(ctx context.Context) (*Server, error) {
	var out []string
	for _, name := range strings.Fields(stopped) {
		out = append(out, "-"+name+"-controller")
	}
	return s.Real(ctx, "scheduler,kwok", "--arg", "kube-controller-manager=--controllers="+strings.Join(out, ","))
}

// held are the workloads of a quiet sandbox that do not come alive.
const held = `deployments replicasets controllerrevisions statefulsets daemonsets cronjobs jobs persistentvolumes
	persistentvolumeclaims services ingresses pods`

// quietSandbox starts a sandbox that does what a quiet real server does, except that it has a node.
func (s Servers) quietSandbox(ctx context.Context) (*Server, error) {
	return s.holding(ctx, strings.Fields(held)...)
}

// holding starts a sandbox in which some kinds of workloads do not come alive.
func (s Servers) holding(ctx context.Context, kinds ...string) (*Server, error) {
	out, err := s.Sandbox(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range kinds {
		r := request{method: http.MethodPost, path: "/sandbox/v1/hold", body: fmt.Sprintf("{%q: %q}", "workload", name)}
		a, err := connect(out).send(ctx, r)
		if err == nil && a.Code != http.StatusOK {
			err = fmt.Errorf("the answer is %d %v", a.Code, a.Body)
		}
		if err != nil {
			out.Stop()
			return nil, fmt.Errorf("holding %s: %w", name, err)
		}
	}
	return out, nil
}
