// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"

	"github.com/go-logr/logr/funcr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/handwerk-dev/handwerk/cmd/play"
	"github.com/handwerk-dev/handwerk/sandbox"
)

const sandboxExample = `  # a cluster in memory; its kubeconfig is printed
  operator sandbox

  # for a script: the kubeconfig is there when the cluster serves
  operator sandbox --kubeconfig kubeconfig.yaml &

  # time passes when somebody says so
  operator sandbox --clock stopped --kubeconfig kubeconfig.yaml &
  export KUBECONFIG=kubeconfig.yaml
  operator sandbox advance 1h

  # a copy of another cluster's objects
  kubectl get crds,all -A -o yaml > dump.yaml
  operator sandbox --load dump.yaml`

func (p *program) sandboxCommand() *cobra.Command {
	o, clock := sandbox.Options{}, string(sandbox.RealClock)
	c := &cobra.Command{
		Use:   "sandbox",
		Short: "Run a cluster in memory, for tests and for trying things",
		Long: `Run an API server in this process, on a port of this machine, in which workloads come
alive, until Ctrl-C. Any client may use it by its kubeconfig, whose path is printed.
The commands below change it while it runs, and operator play as well.

` + play.NotACluster,
		Example: sandboxExample,
		Args:    knownCommand,
		PreRunE: func(c *cobra.Command, _ []string) error {
			if o.Nodes < 1 {
				return &usageError{command: c.CommandPath(), err: fmt.Errorf("--nodes is %d, and a cluster has at least 1", o.Nodes)}
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			o.Clock = sandbox.ClockMode(clock)
			return p.sandbox(c.Context(), o)
		},
		SuggestionsMinimumDistance: 2,
	}
	set := c.Flags()
	set.StringVar(&o.Kubeconfig, "kubeconfig", "", "write the kubeconfig to this `file`, and remove it at the end")
	set.StringArrayVar(&o.CRDs, "crds", nil, "install the CRDs of this `file or folder`; may be repeated")
	set.StringArrayVar(&o.Load, "load", nil, "begin with the objects of this `file or folder`, or of stdin if it is -; may be repeated")
	set.StringVar(&o.Keep, "keep", "", "keep the objects in this `folder`, and go on with them at the next start")
	set.IntVar(&o.Nodes, "nodes", 1, "the `number` of nodes")
	set.BoolVar(&o.NoWorkloads, "no-workloads", false, "leave workloads as clients write them: no Pods appear for a Deployment")
	addChoice(set, &choice{value: &clock, noun: "clock", words: []string{string(sandbox.RealClock), string(sandbox.StoppedClock)}}, "clock", "",
		"how time passes; a stopped clock stands still until operator sandbox advance")
	set.SortFlags = false
	// The variables of these names say where a cluster is that other commands use, not where this one is to be.
	set.VisitAll(func(f *pflag.Flag) { f.Annotations = map[string][]string{envAnnotation: {}} })
	completeChoices(c)
	c.AddCommand(p.controlCommands()...)
	return c
}

// sandbox serves until the context ends.
func (p *program) sandbox(ctx context.Context, o sandbox.Options) error {
	o.Input = p.In
	o.Log = funcr.New(func(prefix, args string) { fmt.Fprintln(p.Err, prefix+args) }, funcr.Options{})
	s, err := sandbox.Start(context.WithoutCancel(ctx), o) // Stop ends it
	if err != nil {
		return err // it says what was begun; of files, all faults
	}
	defer s.Stop()
	leave := s.Leave
	p.last.Store(&leave)
	fmt.Fprintf(p.Out, "export KUBECONFIG=%s\n", s.Kubeconfig())
	<-ctx.Done()
	return nil
}
