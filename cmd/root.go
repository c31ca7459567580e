// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
)

// program is one command line with its inputs.
type program struct {
	Streams
	parts

	registry *actions.Registry
	extra    []func(*dsl.Operator)
	// login, when set, returns the config for the API server.
	login func(context.Context) (*rest.Config, error)
	// metrics are the author's own.
	metrics []prometheus.Collector
	// adopt is set if the process is this program's own. It receives the logger for global logs, and its verbosity.
	adopt func(log logr.Logger, verbosity int)
	// samples has the operators that init writes out; nil if the program has no samples.
	samples fs.FS
	// plugin is the command by which kubectl runs the program, as in "kubectl handwerk"; empty if kubectl does not.
	plugin string
	// source is the folder of the main package if go run has built the program; empty otherwise.
	source string
	// builtBy names the builder of the program, and image is the program's image; both are empty if they are not known.
	builtBy, image string
	// last is what a command still has to do when the process exits at once; nil if that is nothing.
	last atomic.Pointer[func()]
	// begun: the command line was valid, so later errors are not errors of usage.
	begun bool
}

const rootLong = `Handwerk runs Kubernetes operators that are written in YAML, in Go, or in both.

Flags have environment variables, named in their help. A flag wins over its
variable, the variable over the configuration file, the file over the default.

Exit codes:
  0    ok
  1    the run failed, or the configuration has faults
  2    wrong usage; plan: there are changes
  3    status: the operator answers, and is not well
  130  interrupted a second time, before an orderly stop was over`

// execute runs the command line and returns the exit code.
func (p *program) execute(ctx context.Context, args []string) int {
	said := p.terminal(p.Err)
	if err := p.registry.Err(); err != nil {
		return report(said, err) // a fault of the program itself
	}
	root := p.root()
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	code := exitUsage
	if p.begun {
		code = report(said, err)
	} else {
		reportUsage(said, err, command.CommandPath())
	}
	if code == exitUsage && command.Name() == planName && !errors.Is(err, errChanges) {
		return exitFailed // 2 says that there are changes
	}
	return code
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "operator",
		Short:         "Run Kubernetes operators that are written in YAML, in Go, or in both",
		Long:          rootLong,
		SilenceErrors: true,
		SilenceUsage:  true,
		// It has no flags except --help, so the usage line need not mention flags.
		DisableFlagsInUseLine: true,
		Args:                  knownCommand,
		RunE:                  showHelp,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			if err := setFromEnv(c.Flags(), p.Env); err != nil {
				return err
			}
			p.begun = true
			return nil
		},
	}
	root.AddCommand(p.runCommand(), p.playCommand(), p.planCommand(), p.sandboxCommand(), p.validateCommand(), p.crdCommand(), p.rbacCommand(), p.bundleCommand(), p.cleanupCommand(), p.statusCommand(), p.whyCommand(), p.treeCommand(), p.pauseCommand(), p.resumeCommand(), p.releaseDeletionsCommand(), p.retryCommand(), p.migrateCommand(), p.graphCommand(), p.initCommand(), p.schemaCommand(), p.evalCommand(), p.explainCommand(), p.testCommand(), p.versionCommand())
	for _, c := range root.Commands() {
		documentEnv(c.Flags())
	}
	p.underKubectl(root)
	root.SuggestionsMinimumDistance = 2
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	p.tame(root)
	beStrict(root)
	return root
}

// tame keeps texts of a cluster from the terminal's controls in the commands that show some. What other commands write is for files, too.
func (p *program) tame(root *cobra.Command) {
	for _, c := range root.Commands() {
		switch c.Name() {
		case "status", "why", "tree":
			c.SetOut(p.terminal(p.Out))
		case "pause", "resume", "retry", "cleanup":
			c.SetOut(tame{Writer: p.Out})
		}
	}
}

// beStrict makes cobra's own commands report wrong usage.
func beStrict(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		// By default it answers an unknown shell with help.
		if c.Name() == "completion" {
			c.Args, c.RunE = knownCommand, showHelp
		}
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		// An unknown command makes its flags unknown, but the command is the mistake.
		if unknown := knownCommand(root, c.Flags().Args()); c == root && unknown != nil {
			return unknown
		}
		return err
	})
}

func showHelp(c *cobra.Command, _ []string) error { return c.Help() }

// knownCommand refuses an unknown command, and names similar ones.
func knownCommand(parent *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if near := parent.SuggestionsFor(args[0]); len(near) > 0 {
		hint = " (did you mean " + strings.Join(near, " or ") + "?)"
	}
	return fmt.Errorf("unknown command %q%s", args[0], hint)
}

// noArguments rejects arguments. If the first one is a file or directory, the error names --config.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if c.Flags().Lookup("config") != nil && namesConfig(args[0]) {
		hint = " (did you mean --config " + args[0] + "?)"
	}
	return fmt.Errorf("unknown argument %q%s", args[0], hint)
}

// namesConfig reports whether an argument looks like a configuration: a YAML file, or a file or directory that exists.
func namesConfig(path string) bool {
	end := filepath.Ext(path)
	_, err := os.Stat(path)
	return err == nil || end == ".yaml" || end == ".yml"
}
