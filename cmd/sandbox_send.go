// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/sandbox"
)

// running is a sandbox that another process runs.
type running struct {
	config *rest.Config
	// namespace is where workloads are whose names have none.
	namespace string
}

// running finds the sandbox of the kubeconfig.
func (p *program) running(f *controlFlags) (running, error) {
	config, namespace, err := f.kube.find(p.Env, p.inCluster)
	if err != nil {
		return running{}, fmt.Errorf("finding the sandbox: %w; operator sandbox starts one, and says its kubeconfig", err)
	}
	return running{config, cmp.Or(f.namespace, namespace, metav1.NamespaceDefault)}, nil
}

// send sends a control, and returns the time in the sandbox.
func (r running) send(ctx context.Context, verb sandbox.ControlVerb, control sandbox.Control) (time.Time, error) {
	out, err := sandbox.Send(ctx, r.config, verb, control)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		err = fmt.Errorf("no sandbox runs at %s; operator sandbox starts one, and says its kubeconfig", r.config.Host)
	case apierrors.IsNotFound(err):
		err = fmt.Errorf("the API server at %s is no sandbox; operator sandbox starts one, and says its kubeconfig", r.config.Host)
	}
	return out.Now, err
}

// advance lets time pass, and says which time it is then.
func (p *program) advance(c *cobra.Command, f *controlFlags, d time.Duration) error {
	r, err := p.running(f)
	if err != nil {
		return err
	}
	now, err := r.send(c.Context(), sandbox.ControlAdvance, sandbox.Control{Duration: metav1.Duration{Duration: d}})
	if err == nil {
		fmt.Fprintln(c.OutOrStdout(), now.UTC().Format(time.RFC3339))
	}
	return err
}

// controlWorkload sends a control about a workload, and says what has become of it.
func (p *program) controlWorkload(c *cobra.Command, f *controlFlags, verb sandbox.ControlVerb, name string, control sandbox.Control, is string) error {
	r, err := p.running(f)
	if err != nil {
		return err
	}
	resource, object, named := strings.Cut(name, "/")
	if control.Workload = resource; named || f.namespace != "" {
		control.Workload = strings.Join([]string{resource, r.namespace, cmp.Or(object, "*")}, "/")
	}
	if _, err = r.send(c.Context(), verb, control); err == nil {
		fmt.Fprintln(c.OutOrStdout(), name, is)
	}
	return err
}

// controlRequests sends a control about requests, and says what has become of them.
func (p *program) controlRequests(c *cobra.Command, f *controlFlags, verb sandbox.ControlVerb, args []string) error {
	r, err := p.running(f)
	if err != nil {
		return err
	}
	resource, name, _ := strings.Cut(args[1], "/")
	fault := sandbox.Fault{
		Verb: args[0], Resource: resource, Name: name, Namespace: f.namespace, Subresource: f.subresource, Code: f.code, Times: f.times,
	}
	is := "are released"
	if verb == sandbox.ControlFail {
		is = fmt.Sprintf("fail with %d", f.code)
		if f.times > 0 {
			is += ", " + count(f.times, "time")
		}
	}
	if _, err = r.send(c.Context(), verb, sandbox.Control{Request: &fault}); err == nil {
		fmt.Fprintln(c.OutOrStdout(), "requests to", args[0], args[1], is)
	}
	return err
}

// releaseAll releases everything.
func (p *program) releaseAll(c *cobra.Command, f *controlFlags) error {
	r, err := p.running(f)
	if err != nil {
		return err
	}
	if _, err = r.send(c.Context(), sandbox.ControlRelease, sandbox.Control{All: true}); err == nil {
		fmt.Fprintln(c.OutOrStdout(), "all workloads and requests are released")
	}
	return err
}
