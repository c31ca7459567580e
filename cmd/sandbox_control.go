// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/sandbox"
)

// controlFlags are the flags of the commands that change a sandbox that runs.
type controlFlags struct {
	kube      kubeFlags
	namespace string

	reason      string
	code, times int
	subresource string
	all         bool
}

func (f *controlFlags) add(c *cobra.Command) {
	set := c.Flags()
	set.StringVarP(&f.namespace, "namespace", "n", "", "the `namespace` (default that of the kubeconfig)")
	set.StringVar(&f.kube.kubeconfig, "kubeconfig", "", "find the sandbox by this `file` (default $KUBECONFIG)")
	set.SortFlags = false
	set.VisitAll(func(f *pflag.Flag) { f.Annotations = map[string][]string{envAnnotation: {}} })
}

// controlCommands returns the commands that change a running sandbox, or the cluster of operator play.
func (p *program) controlCommands() []*cobra.Command {
	return []*cobra.Command{p.advanceCommand(), p.holdCommand(), p.delayCommand(), p.failCommand(), p.releaseCommand()}
}

func (p *program) advanceCommand() *cobra.Command {
	f := &controlFlags{}
	c := &cobra.Command{
		Use:   "advance DURATION",
		Short: "Let time pass in a sandbox with a stopped clock",
		Long: `Let time pass in a sandbox that was started with --clock stopped. What becomes due
happens in its order: CronJobs make their Jobs, deadlines pass, Pods become ready. The
command returns when the workloads have done all of it, and takes no longer than that.`,
		Example: `  operator sandbox advance 1h
  operator sandbox advance 0s      # wait for what the workloads can do now`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			d, err := time.ParseDuration(args[0])
			if err != nil {
				return &usageError{command: c.CommandPath(), err: fmt.Errorf("want a duration as in 1h30m, found %q", args[0])}
			}
			return p.advance(c, f, d)
		},
	}
	f.add(c)
	return c
}

func (p *program) holdCommand() *cobra.Command {
	f := &controlFlags{}
	c := &cobra.Command{
		Use:   "hold RESOURCE/NAME",
		Short: "Leave workloads of a sandbox as they are",
		Long: `Leave workloads as they are until operator sandbox release: a Deployment makes no Pods, and
a new Pod stays Pending. The name may be a glob.`,
		Example: "  operator sandbox hold deployments/web\n  operator sandbox hold 'pods/web-*' -n team-a",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return p.controlWorkload(c, f, sandbox.ControlHold, args[0], sandbox.Control{}, "is held")
		},
	}
	f.add(c)
	return c
}

func (p *program) delayCommand() *cobra.Command {
	f := &controlFlags{}
	c := &cobra.Command{
		Use:   "delay RESOURCE/NAME DURATION",
		Short: "Make workloads of a sandbox take their time",
		Long: `Make workloads take their time until operator sandbox release: Pods are ready after it, or
have succeeded if they are a Job's, and claims are bound. The name may be a glob.`,
		Example: "  operator sandbox delay deployments/web 20s",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			d, err := time.ParseDuration(args[1])
			if err != nil {
				return &usageError{command: c.CommandPath(), err: fmt.Errorf("want a duration as in 20s, found %q", args[1])}
			}
			return p.controlWorkload(c, f, sandbox.ControlDelay, args[0], sandbox.Control{Duration: metav1.Duration{Duration: d}}, "takes "+d.String())
		},
	}
	f.add(c)
	return c
}

func (p *program) failCommand() *cobra.Command {
	f := &controlFlags{}
	c := &cobra.Command{
		Use:   "fail RESOURCE/NAME | VERB RESOURCE[/NAME]",
		Short: "Make workloads or requests of a sandbox fail",
		Long: `Make workloads fail, or requests of clients, until operator sandbox release.

With one argument it is a workload. The reason is that of containers, or Unready,
Unschedulable, or one of a Job's. With two arguments these are requests, by the verbs of
RBAC: get, list, watch, create, update, patch, delete, deletecollection. Without -n they
are those in all namespaces.`,
		Example: `  operator sandbox fail deployments/web --reason ImagePullBackOff
  operator sandbox fail patch pods --with 409 --times 3
  operator sandbox fail update deployments/web --subresource status -n team-a`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				return p.controlWorkload(c, f, sandbox.ControlFail, args[0], sandbox.Control{Reason: f.reason}, "fails with "+f.reason)
			}
			return p.controlRequests(c, f, sandbox.ControlFail, args)
		},
	}
	set := c.Flags()
	set.StringVar(&f.reason, "reason", "CrashLoopBackOff", "why the workload fails, as a `word`")
	set.IntVar(&f.code, "with", 500, "the HTTP `status` of the requests' responses")
	set.IntVar(&f.times, "times", 0, "how many requests fail, as a `number` (default all)")
	set.StringVar(&f.subresource, "subresource", "", "requests for this `subresource` fail, as in status")
	f.add(c)
	c.PreRunE = func(c *cobra.Command, args []string) error { return f.check(c, args) }
	return c
}

// check returns an error for flags of the other form of the command.
func (f *controlFlags) check(c *cobra.Command, args []string) error {
	foreign := []string{"with", "times", "subresource"}
	form := "requests, as in 'fail patch pods'"
	if len(args) == 2 {
		foreign, form = []string{"reason"}, "a workload, as in 'fail deployments/web'"
	}
	for _, name := range foreign {
		if c.Flags().Changed(name) {
			return &usageError{command: c.CommandPath(), err: fmt.Errorf("--%s is for %s", name, form)}
		}
	}
	return nil
}

func (p *program) releaseCommand() *cobra.Command {
	f := &controlFlags{}
	c := &cobra.Command{
		Use:   "release RESOURCE/NAME | VERB RESOURCE[/NAME] | --all",
		Short: "End what sandbox hold, delay or fail began",
		Long: `End what operator sandbox hold, delay or fail began with the same words. The workloads go on,
or recover.`,
		Example: "  operator sandbox release deployments/web\n  operator sandbox release patch pods\n  operator sandbox release --all",
		Args:    cobra.RangeArgs(0, 2),
		PreRunE: func(c *cobra.Command, args []string) error {
			if f.all != (len(args) == 0) {
				return &usageError{command: c.CommandPath(), err: errors.New("want either a workload, requests or --all")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			switch len(args) {
			case 0:
				return p.releaseAll(c, f)
			case 1:
				return p.controlWorkload(c, f, sandbox.ControlRelease, args[0], sandbox.Control{}, "is released")
			}
			return p.controlRequests(c, f, sandbox.ControlRelease, args)
		},
	}
	c.Flags().BoolVar(&f.all, "all", false, "release everything")
	c.Flags().StringVar(&f.subresource, "subresource", "", "the `subresource` of the requests")
	f.add(c)
	return c
}
