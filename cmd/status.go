// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/handwerk-dev/handwerk/engine/operate/status"
)

func (p *program) statusCommand() *cobra.Command {
	f := &askFlags{}
	c := &cobra.Command{
		Use:   "status",
		Short: "Ask a running operator how it is",
		Long: `Ask the process of an operator that leads how it is: its configuration, its resources
and how they are watched, its queues, and the objects that wait, fail or are held.

The leader is found by the operator's Lease, and asked by a port that the API server
forwards to its Pod: you need the rights to list leases, to get pods, and to get
and create pods/portforward in its namespace. It runs no handler and changes nothing.

Exit codes: 0 all is well; 3 something is degraded, or objects fail or are held; 1 the
operator could not be asked.`,
		Example: `  # the only operator in the cluster
  operator status

  # one of several
  operator status --operator webapp --operator-namespace handwerk-system

  # a process on this machine
  operator status --address 127.0.0.1:8082`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.status(c.Context(), f, c.OutOrStdout())
		},
	}
	f.add(c.Flags())
	completeChoices(c)
	return c
}

// status asks an operator for its status, and writes it.
func (p *program) status(ctx context.Context, f *askFlags, out io.Writer) error {
	process, op, err := p.open(ctx, f)
	if err != nil {
		return err
	}
	defer process.Close()
	s := &status.Status{}
	if err := process.Ask(ctx, "status", nil, s); err != nil {
		return err
	}
	err = f.write(out, s, func() error {
		(&statusPage{s, out, p.colors()}).write()
		if op != nil && op.Digest != "" && s.Configuration.Digest != op.Digest {
			_, err := fmt.Fprintln(out, "\nThe process has another configuration than --config.")
			return err
		}
		return nil
	})
	if err == nil && !s.Healthy() {
		return errUnwell
	}
	return err
}
