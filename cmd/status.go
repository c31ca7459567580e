// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/handwerk-dev/handwerk/engine/operate/status"
)

func (p *program) statusCommand() *cobra.Command {
	f, watch := &askFlags{}, false
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
  operator status --address 127.0.0.1:8082

  # again every two seconds, until Ctrl-C
  operator status --watch`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if watch {
				again := time.NewTicker(watchPeriod)
				defer again.Stop()
				return p.watchStatus(c.Context(), f, c.OutOrStdout(), again.C)
			}
			return p.status(c.Context(), f, c.OutOrStdout())
		},
	}
	c.Flags().BoolVarP(&watch, "watch", "w", false, "ask again every two seconds, until Ctrl-C; the exit code is 0 then")
	f.add(c.Flags())
	completeChoices(c)
	return c
}

// watchPeriod is the time between two questions of status --watch.
const watchPeriod = 2 * time.Second

// clearScreen makes a terminal forget its screen, and begin at the top.
const clearScreen = "\x1b[H\x1b[2J"

// watchStatus asks again and again until ctx ends. On a terminal each answer takes the place of the one before. An operator that
// cannot be asked is asked again, too: it may be restarting.
func (p *program) watchStatus(ctx context.Context, f *askFlags, out io.Writer, again <-chan time.Time) error {
	for {
		var page bytes.Buffer
		err := p.status(ctx, f, &page)
		if ctx.Err() != nil {
			return nil
		}
		if p.terminal(p.Out).width > 0 {
			fmt.Fprint(p.Out, clearScreen)
		}
		if _, failed := page.WriteTo(out); failed != nil {
			return failed
		}
		if err != nil && !errors.Is(err, errUnwell) {
			fmt.Fprintln(out, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-again:
		}
	}
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
		var page bytes.Buffer
		(&statusPage{s, &page, p.colors()}).write()
		if err := p.people(out, &page); err != nil {
			return err
		}
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
