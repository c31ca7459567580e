// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/handwerk-dev/handwerk/cmd/plan"
	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/sandbox"
)

// planFlags are the flags of plan.
type planFlags struct {
	scope            runFlags
	objects, against []string
	// functions are the functions in Go that may be called, and workloads says what becomes of workloads.
	functions []string
	workloads string
	limit     time.Duration
	output    string
}

// planName is the command's name. An error of its usage has the exit code of any error.
const planName = "plan"

// errChanges is returned by plan when the operator would change something.
var errChanges = errors.New("changes")

const planExample = `  operator plan --config operator.yaml

  # the difference to the configuration that works now
  operator plan --config new --against old

  # of a dump, without a cluster
  kubectl get crds,namespaces,websites,deployments,configmaps -A -o yaml > dump.yaml
  operator plan --config operator.yaml --objects dump.yaml`

func (p *program) planCommand() *cobra.Command {
	f := &planFlags{workloads: string(plan.WorkloadsRollout), output: "text"}
	worker := lookup(p.Env, plan.Worker) != ""
	c := &cobra.Command{
		Use:   planName + " --config FILE|DIR",
		Short: "Show what an operator would do to the objects of a cluster",
		Long: `Show what an operator would do to the objects of a cluster. The objects are read with
your kubeconfig, which needs no right to write, or from a dump. The operator runs in
this process against a twin of the cluster in memory, in virtual time, until it rests.
Nothing is written to the cluster.

Functions in Go are not called, and daemons do not start: the plan lists them, and does
not guess what follows from their results.

Exit codes: 0 for no change, 2 for changes, 1 for an error.`,
		Example: planExample,
		Args:    noArguments,
		PreRunE: func(c *cobra.Command, args []string) error {
			if worker {
				return nil
			}
			return p.usage(&f.scope.config, f.check)(c, args)
		},
		RunE: func(c *cobra.Command, _ []string) error {
			if worker {
				return p.planWorker(c.Context())
			}
			return p.plan(c.Context(), f)
		},
	}
	f.add(c.Flags())
	completeChoices(c)
	return c
}

func (f *planFlags) add(set *pflag.FlagSet) {
	f.scope.set = set
	addConfig(set, &f.scope.config)
	set.StringSliceVar(&f.against, "against", nil,
		"plan the change from the configuration in this `FILE|DIR`, which works in the twin first; repeatable")
	set.StringArrayVar(&f.objects, "objects", nil,
		"read the objects of the cluster from this `file or folder`, or from stdin if it is -; repeatable")
	f.scope.kube.add(set)
	f.scope.addNamespaces(set)
	set.DurationVar(&f.limit, "for", 10*time.Minute, "let the operator work for so `long` in virtual time, if it does not rest before")
	set.StringSliceVar(&f.functions, "functions", nil, "call the functions in Go of these `names`, whatever effects they have; none by default")
	words := []string{string(plan.WorkloadsRollout), string(plan.WorkloadsAlive), string(plan.WorkloadsFrozen)}
	addChoice(set, &choice{value: &f.workloads, noun: "mode", words: words}, "workloads", "",
		"what becomes of Deployments and other workloads: a changed one is ready after its roll-out,\nall live and have Pods, or all keep their status")
	addChoice(set, &choice{value: &f.output, noun: "format", words: []string{"text", "json", "markdown"}}, "output", "o", "how the plan is written")
	set.SortFlags = false
}

// check reports flags that are wrong.
func (f *planFlags) check() error {
	switch {
	case len(f.objects) > 0 && (f.scope.kube.kubeconfig != "" || f.scope.kube.context != ""):
		return errors.New("--objects takes the place of a cluster; it goes without --kubeconfig and --context")
	case f.limit < time.Second:
		return fmt.Errorf("--for must be at least 1s, found %s", f.limit)
	}
	return f.scope.checkNamespaces()
}

// plan makes a plan in a child process, and prints it.
func (p *program) plan(ctx context.Context, f *planFlags) error {
	if err := p.checkPlanned(f); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the program: %w", err)
	}
	process := plan.Process{Program: program, Args: []string{planName}, Env: p.Env, In: p.In, Err: p.Err}
	if p.shows != nil && p.shows(p.Err) {
		process.Bar.Out = p.Err
	}
	report, err := plan.Run(ctx, process, f.job())
	if errors.Is(err, plan.ErrSaid) {
		return errPrinted
	}
	if err != nil {
		return err
	}
	switch f.output {
	case "json":
		err = writeJSON(p.Out, report)
	case "markdown":
		err = plan.Markdown(tame{Writer: p.Out}, report)
	default:
		out := p.terminal(p.Out)
		err = plan.Text(out, report, out.colors)
	}
	if err == nil && !report.IsEmpty() {
		err = errChanges
	}
	return err
}

// checkPlanned reports faults of the configurations, before any work.
func (p *program) checkPlanned(f *planFlags) error {
	versions := [][]string{f.scope.config}
	if len(f.against) > 0 {
		versions = append(versions, f.against)
	}
	for _, paths := range versions {
		if _, err := p.planned(plan.NewFunctions(nil), paths, f.scope.override); err != nil {
			return err
		}
	}
	return nil
}

// job returns the job of the child process.
func (f *planFlags) job() plan.Job {
	return plan.Job{
		Config: f.scope.config, Against: f.against, Namespaces: f.scope.namespaces, Objects: f.objects,
		Kube:      plan.Kube{Kubeconfig: f.scope.kube.kubeconfig, Context: f.scope.kube.context},
		Functions: f.functions, Workloads: plan.Workloads(f.workloads), For: f.limit,
	}
}

// planned reads an operator whose functions in Go are not called.
func (p *program) planned(functions *plan.Functions, paths []string, override func(*dsl.Operator)) (*dsl.Operator, error) {
	instead := program{registry: p.registry.Instead(functions.Instead), parts: p.parts}
	for _, add := range p.extra {
		instead.extra = append(instead.extra, functions.Beside(add))
	}
	return instead.operator(paths, override)
}

// planWorker is the child process.
func (p *program) planWorker(ctx context.Context) error {
	job, rest, err := plan.ReadJob(p.In)
	if err != nil {
		return err
	}
	in := &plan.Input{Functions: plan.NewFunctions(job.Functions)}
	scope := func(op *dsl.Operator) {
		if len(job.Namespaces) > 0 {
			op.Scope = dsl.Scope{Namespaces: job.Namespaces}
		}
	}
	if in.Operator, err = p.planned(in.Functions, job.Config, scope); err != nil {
		return err
	}
	if len(job.Against) > 0 {
		if in.Against, err = p.planned(in.Functions, job.Against, scope); err != nil {
			return err
		}
	}
	if len(job.Objects) > 0 {
		in.Objects.List, err = sandbox.ReadDump(job.Objects, rest)
	} else {
		in.Objects, err = p.planObjects(ctx, job.Kube, in.Operators())
	}
	if err != nil {
		return err
	}
	plan.Work(job, in, os.Stdout)
	return nil
}

// planObjects reads the objects of the cluster.
func (p *program) planObjects(ctx context.Context, kube plan.Kube, operators []*dsl.Operator) (plan.Objects, error) {
	config, namespace, err := p.access(ctx, &kubeFlags{kubeconfig: kube.Kubeconfig, context: kube.Context})
	if err != nil {
		return plan.Objects{}, err
	}
	config.UserAgent = userAgent(operators[0].Name)
	c := plan.Cluster{Config: config}
	for _, each := range []string{p.ownNamespace(), defaultNamespace, namespace} {
		if each != "" {
			c.Namespaces = append(c.Namespaces, each)
		}
	}
	if c.Lookup, err = p.lookup(ctx, operators[0], config); err != nil {
		return plan.Objects{}, fmt.Errorf("looking at the cluster: %w", err)
	}
	return c.Read(ctx, operators...)
}
