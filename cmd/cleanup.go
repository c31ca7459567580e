// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/operate/cleanup"
)

// stopTime is how long cleanup waits for the operator to stop, in addition to the grace period of its handlers: as
// long as a Lease is valid that was not released.
const stopTime = 30 * time.Second

// everyObjects is the number of objects between two reports of progress.
const everyObjects = 500

// cleanupFlags are the flags of cleanup.
type cleanupFlags struct {
	config            []string
	kube              kubeFlags
	namespace         string
	children          string
	yes, dryRun, stop bool
}

// The values of --children.
const (
	keepChildren   = "keep"
	deleteChildren = "delete"
)

func (p *program) cleanupCommand() *cobra.Command {
	f := &cleanupFlags{children: keepChildren}
	c := &cobra.Command{
		Use:   "cleanup --config FILE|DIR",
		Short: "Take away what an operator has left in a cluster",
		Long: `Take away what an operator has left in a cluster, before it is uninstalled: its
finalizers, annotations, labels and conditions on objects, its admission policies and
webhook configurations, its register, keys, certificate and lock, pauses of it and of
namespaces, and the ConfigMaps of earlier configurations.
Objects and CRDs stay; an object that is being deleted goes once the finalizer is off,
and no delete handler runs for it any more. Children stay, or go with --children=delete.

It says first what it has found, and asks. While a process of the operator runs, it does
nothing: stop it, or give --stop, which scales the Deployment of operator bundle to zero.
It holds the operator's Lease while it works, so no process begins to work meanwhile.
What the account may not see or change is said at the end, and the exit code is 1.`,
		Example: `  operator cleanup --config webapp --dry-run
  operator cleanup --config webapp --stop --yes
  operator bundle --config webapp | kubectl delete -f -`,
		Args:    noArguments,
		PreRunE: p.usage(&f.config),
		RunE: func(c *cobra.Command, _ []string) error {
			return p.cleanup(c.Context(), f, c.OutOrStdout())
		},
	}
	f.add(c.Flags())
	completeChoices(c)
	return c
}

func (f *cleanupFlags) add(set *pflag.FlagSet) {
	addConfig(set, &f.config)
	f.kube.add(set)
	set.StringVar(&f.namespace, "namespace", defaultNamespace, "the `namespace` that the operator is deployed in, or that of the kubeconfig\nif it ran outside of the cluster")
	set.Var(&choice{value: &f.children, noun: "choice", words: []string{keepChildren, deleteChildren}}, "children",
		"keep the children, without the operator's marks, or delete them")
	set.BoolVar(&f.stop, "stop", false, "scale the operator's Deployment to zero first, and wait for its end")
	set.BoolVar(&f.dryRun, "dry-run", false, "say what there is, and change nothing")
	set.BoolVar(&f.yes, "yes", false, "do not ask")
	set.SortFlags = false
}

// cleanup looks for what the operator has left, asks, and takes it away.
func (p *program) cleanup(ctx context.Context, f *cleanupFlags, out io.Writer) error {
	op, err := p.operator(f.config, func(*dsl.Operator) {})
	if err != nil {
		return err
	}
	config, _, err := p.access(ctx, &f.kube)
	if err != nil {
		return err
	}
	config.UserAgent = userAgent(op.Name)
	c, err := p.cleaner(ctx, op, cleanup.Settings{
		Config: config, Namespace: f.namespace, Deployment: objectName(op.Name), DeleteChildren: f.children == deleteChildren,
		Report: func(text string) { fmt.Fprintln(out, text) },
	})
	if err != nil {
		return fmt.Errorf("cleaning up after operator %s: %w", op.Name, err)
	}
	fmt.Fprintf(out, "looking in the cluster at %s\n", config.Host) // the current context may not be the intended one
	failed, err := f.takeAway(ctx, p, op, c, out)
	if err != nil {
		return fmt.Errorf("cleaning up after operator %s: %w", op.Name, err)
	}
	for _, err := range failed {
		fmt.Fprintln(tame{Writer: p.Err}, "not done:", err)
	}
	if len(failed) > 0 {
		return fmt.Errorf("cleaning up after operator %s: %d things could not be done", op.Name, len(failed))
	}
	return nil
}

// takeAway lists what the operator has left, asks, and takes it away. It returns what it could not take away. It
// changes nothing before the answer: the Deployment, too, keeps its Pods until then.
func (f *cleanupFlags) takeAway(ctx context.Context, p *program, op *dsl.Operator, c *cleanup.Cleaner, out io.Writer) ([]error, error) {
	if !f.dryRun && !f.stop {
		if err := ended(ctx, c); err != nil {
			return nil, err
		}
	}
	found := c.Look(ctx)
	tellFindings(out, f, op, found)
	if f.dryRun || found.Empty() && !f.stop {
		return found.Unseen, nil
	}
	if err := p.agreed(f.yes, out); err != nil {
		return nil, err
	}
	if f.stop {
		if err := stopped(ctx, op, c); err != nil {
			return nil, err
		}
	}
	hold, err := c.Hold(ctx)
	if err != nil {
		return nil, err
	}
	failed := f.remove(hold.Context, c, out)
	if err := hold.Release(); err != nil {
		failed = append(failed, err)
	}
	return failed, nil
}

// remove looks again, because processes may have worked until now, and removes what it finds. It returns what could not be done.
func (f *cleanupFlags) remove(ctx context.Context, c *cleanup.Cleaner, out io.Writer) []error {
	found := c.Look(ctx)
	done, all := 0, len(found.Children)+len(found.Patched)+len(found.Objects)+len(found.Own)
	failed := c.Remove(ctx, found, func(cleanup.Found) {
		if done++; done%everyObjects == 0 {
			fmt.Fprintf(out, "%d of %d\n", done, all)
		}
	})
	fmt.Fprintf(out, "cleaned %d of %d\n", done, all)
	return append(found.Unseen, failed...)
}

// ended returns an error if a process of the operator is running.
func ended(ctx context.Context, c *cleanup.Cleaner) error {
	running, err := c.Running(ctx, time.Now())
	if err == nil && running != "" {
		err = errors.New("it runs: " + running + " (stop it, or give --stop)")
	}
	return err
}

// stopped scales the operator's Deployment to zero, and waits for its end.
func stopped(ctx context.Context, op *dsl.Operator, c *cleanup.Cleaner) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(op.Settings.GracePeriod, dsl.DefaultGracePeriod)+stopTime)
	defer cancel()
	return c.Stop(ctx)
}

// tellFindings prints the findings.
func tellFindings(out io.Writer, f *cleanupFlags, op *dsl.Operator, found cleanup.Findings) {
	if len(found.Within) > 0 {
		fmt.Fprintf(out, "looked in namespaces %s alone: the account may not list all kinds elsewhere\n", strings.Join(found.Within, ", "))
	}
	if len(found.Beside) > 0 {
		fmt.Fprintf(out, "looked in the namespaces of this operator's scope alone: it is deployed in namespace %s, too\n", strings.Join(found.Beside, ", "))
	}
	for _, namespace := range found.Elsewhere {
		fmt.Fprintf(out, "operator %[1]s has a Lease in namespace %[2]s, and --namespace is %[3]s: what it keeps in %[2]s stays\n", op.Name, namespace, f.namespace)
	}
	for _, namespace := range found.Admission {
		fmt.Fprintf(out, "operator %[1]s has policies or webhooks of its deployment in namespace %[2]s, and --namespace is %[3]s: they stay\n", op.Name, namespace, f.namespace)
	}
	if found.Alone && len(found.Within) == 0 {
		fmt.Fprintln(out, "looked in the namespaces of this operator's scope alone: the account may not list Leases, which say whether it is deployed in another namespace, too")
	}
	if f.stop {
		fmt.Fprintf(out, "Deployment %s/%s is scaled to zero first\n", f.namespace, objectName(op.Name))
	}
	if found.Empty() {
		fmt.Fprintf(out, "operator %s has left nothing that can be seen\n", op.Name)
		return
	}
	fmt.Fprintf(out, "operator %s has left:\n", op.Name)
	print := func(list []cleanup.Found, what, fate string) {
		if len(list) == 0 {
			return
		}
		fmt.Fprintf(out, "  %s (%d): %s\n", what, len(list), fate)
		for i, one := range list {
			if i == 5 {
				fmt.Fprintf(out, "    and %d more\n", len(list)-i)
				break
			}
			fmt.Fprintf(out, "    %s\n", one)
		}
	}
	print(found.Objects, "objects with its marks", "they stay, without these")
	print(found.Patched, "objects that its handlers have patched", "they stay, without these fields")
	if f.children == deleteChildren {
		print(found.Children, "children", "they are deleted")
	} else {
		print(found.Children, "children", "they stay, without its marks")
	}
	print(found.Own, "objects of its own", "they are deleted")
}

// agreed asks a person whether to continue.
func (p *program) agreed(yes bool, out io.Writer) error {
	if yes {
		return nil
	}
	if p.In == nil || !p.asks(p.In) {
		return errors.New("without a terminal, nothing is changed unless --yes is given")
	}
	fmt.Fprint(out, "go on? [y/N] ")
	line, _ := bufio.NewReader(p.In).ReadString('\n') // the end of the input means no
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return errors.New("nothing was changed")
	}
	return nil
}
