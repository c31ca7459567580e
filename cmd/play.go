// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/handwerk-dev/handwerk/cmd/play"
	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/dsl/source"
)

// playFlags are the flags of play.
type playFlags struct {
	config   []string
	examples bool
	keep     string
	// cluster: it plays in the cluster of kube, and yes: without a question.
	cluster, yes bool
	kube         kubeFlags
	// scope has the namespaces.
	scope runFlags
}

const playExample = `  # the operator in this folder
  operator play

  # with the objects of its example files
  operator play --config webapp --examples

  # in one namespace of the cluster of your kubeconfig
  operator play --cluster -n dev`

func (p *program) playCommand() *cobra.Command {
	f := &playFlags{}
	c := &cobra.Command{
		Use:   "play [--config FILE|DIR]",
		Short: "Try an operator against an API server in this process",
		Long: `Run an operator against an API server in this process, on a port of this machine,
with the CRDs beside the configuration. The path of its kubeconfig is printed. When
a file of the configuration changes, the operator starts again; while that has
faults, the last one goes on. Each write has a line. Ctrl-C leaves nothing behind.
With --cluster it does the same in a cluster that exists, where its objects stay.

` + play.NotACluster,
		Example: playExample,
		Args:    noArguments,
		PreRunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return &usageError{command: c.CommandPath(), err: err}
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			return p.play(c.Context(), f)
		},
	}
	f.add(c.Flags())
	return c
}

func (f *playFlags) add(set *pflag.FlagSet) {
	addConfig(set, &f.config)
	set.BoolVar(&f.examples, "examples", false,
		"create the objects in files beside the configuration whose names begin with example")
	set.StringVar(&f.keep, "keep", "",
		"keep the objects in this `folder`, and go on with them at the next start; with the kubeconfig")
	f.scope.set = set
	f.scope.addNamespaces(set)
	set.BoolVar(&f.cluster, "cluster", false, "play in the cluster of your kubeconfig, after a question")
	f.kube.add(set)
	set.BoolVar(&f.yes, "yes", false, "do not ask")
	set.SortFlags = false
}

// check reports flags that do not go together.
func (f *playFlags) check() error {
	switch {
	case f.cluster && f.keep != "":
		return errors.New("--keep is for an API server in the process, and a cluster keeps its objects itself")
	case !f.cluster && (f.kube.kubeconfig != "" || f.kube.context != ""):
		return errors.New("--kubeconfig and --context need --cluster")
	}
	return f.scope.checkNamespaces()
}

// play plays the operator.
func (p *program) play(ctx context.Context, f *playFlags) error {
	paths, beside := f.config, ""
	if len(paths) == 0 {
		paths, beside = p.nearest()
	}
	s := play.Settings{
		Paths: paths, Beside: beside, Explain: spelledOut, Examples: f.examples, Keep: f.keep, Namespace: "default",
		Last: func(do func()) { p.last.Store(&do) },
		Out:  fitting{p.terminal(p.Out)}, Color: p.colors(), Adopt: p.adopt,
	}
	s.Load = func() (*dsl.Operator, error) {
		op, err := p.operator(paths, f.scope.override)
		if err != nil || f.cluster { // a cluster may have other versions of the built-in kinds
			return op, err
		}
		faults, _, err := config.Check(op)
		return op, cmp.Or(err, asError(faults))
	}
	if f.cluster {
		if err := p.inACluster(ctx, f, &s); err != nil {
			return err
		}
	}
	return play.Run(ctx, s)
}

// inACluster sets that of the kubeconfig, if the person agrees.
func (p *program) inACluster(ctx context.Context, f *playFlags, s *play.Settings) error {
	op, err := s.Load()
	if err != nil {
		return err
	}
	config, namespace, err := p.access(ctx, &f.kube)
	if err != nil {
		return err
	}
	s.Cluster, s.Namespace = config, cmp.Or(onlyNamespace(op), p.ownNamespace(), namespace, s.Namespace)
	fmt.Fprintf(p.Out, "operator %s is going to work in the cluster at %s", op.Name, config.Host)
	if f.kube.found != "" {
		fmt.Fprintf(p.Out, " (context %s)", f.kube.found)
	}
	fmt.Fprintf(p.Out, ", in %s\n", scopeOf(op))
	fmt.Fprintf(p.Out, "it installs CRDs, and its own objects and examples without a namespace come into namespace %s; all that stays\n", s.Namespace)
	if op.Settings.LeaderElection.Mode != dsl.LeaderLease {
		fmt.Fprintln(p.Out, "if it runs there already, both do the same work: it does not elect a leader by lease")
	}
	return p.agreed(f.yes, p.Out)
}

// onlyNamespace is that of an operator which works in one alone: objects elsewhere would wait for it in vain.
func onlyNamespace(op *dsl.Operator) string {
	if names := op.Scope.Namespaces; len(names) == 1 && !strings.ContainsAny(names[0], "*?[!") {
		return names[0]
	}
	return ""
}

// scopeOf says where an operator works.
func scopeOf(op *dsl.Operator) string {
	where := "all namespaces"
	if len(op.Scope.Namespaces) > 0 {
		where = "namespaces " + strings.Join(op.Scope.Namespaces, ", ")
	}
	if op.Scope.NamespaceSelector != "" {
		where += " with labels " + op.Scope.NamespaceSelector
	}
	return where
}

// spelledOut returns the words for an error of a configuration, with excerpts.
func spelledOut(err error) string {
	list, ok := errors.AsType[source.Faults](err)
	if !ok {
		return err.Error()
	}
	var out bytes.Buffer
	for _, f := range list.Shown() {
		tellFault(tame{Writer: &out}, "", noColor, f)
	}
	return out.String()
}
