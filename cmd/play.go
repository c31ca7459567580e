// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/handwerk-dev/handwerk/cmd/play"
	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/source"
)

// playFlags are the flags of play.
type playFlags struct {
	config   []string
	examples bool
	keep     string
}

const playExample = `  # the operator in this folder
  operator play

  # with the objects of its example files
  operator play --config webapp --examples`

func (p *program) playCommand() *cobra.Command {
	f := &playFlags{}
	c := &cobra.Command{
		Use:   "play [--config FILE|DIR]",
		Short: "Try an operator against an API server in this process",
		Long: `Run an operator against an API server in this process, on a port of this machine,
with the CRDs beside the configuration. The path of its kubeconfig is printed. When
a file of the configuration changes, the operator starts again; while that has
faults, the last one goes on. Each write has a line. Ctrl-C leaves nothing behind.

` + play.NotACluster,
		Example: playExample,
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.play(c.Context(), f)
		},
	}
	addConfig(c.Flags(), &f.config)
	c.Flags().BoolVar(&f.examples, "examples", false,
		"create the objects in files beside the configuration whose names begin with example")
	c.Flags().StringVar(&f.keep, "keep", "",
		"keep the objects in this `folder`, and go on with them at the next start; with the kubeconfig")
	c.Flags().SortFlags = false
	return c
}

// play plays the operator.
func (p *program) play(ctx context.Context, f *playFlags) error {
	paths, beside := f.config, ""
	if len(paths) == 0 {
		paths, beside = p.nearest()
	}
	return play.Run(ctx, play.Settings{
		Paths: paths, Beside: beside,
		Load: func() (*dsl.Operator, error) {
			return p.operator(paths, func(*dsl.Operator) {})
		},
		Explain: spelledOut, Examples: f.examples, Keep: f.keep, Namespace: "default",
		Out: p.Out, Color: p.shows(p.Out) && lookup(p.Env, "NO_COLOR") == "",
	})
}

// spelledOut returns the words for an error of a configuration, with excerpts.
func spelledOut(err error) string {
	list, ok := errors.AsType[source.Faults](err)
	if !ok {
		return err.Error()
	}
	var out bytes.Buffer
	for _, f := range list {
		tellFault(&out, f)
	}
	return out.String()
}
