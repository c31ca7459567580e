// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/sandbox/cases"
)

func (p *program) schemaCommand() *cobra.Command {
	var part, ofCases bool
	c := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the configuration",
		Long: `Print the JSON Schema of the configuration, with the actions and functions of this
very program; with --part that of a part, which has a file of its own; or with --cases
that of files with cases, which operator test runs. Editors complete and check the
files with it.`,
		Example: `  operator schema > operator.schema.json
  operator schema --part > part.schema.json
  operator schema --cases > cases.schema.json
  # and at the top of operator.yaml, for editors with the YAML language server:
  # yaml-language-server: $schema=operator.schema.json`,
		Args:    noArguments,
		PreRunE: func(c *cobra.Command, _ []string) error { return oneForm(c, part, ofCases) },
		RunE: func(c *cobra.Command, _ []string) error {
			of := p.schema
			switch {
			case part:
				of = config.PartSchema
			case ofCases:
				of = func(*actions.Registry) ([]byte, error) { return cases.Schema() }
			}
			text, err := of(p.registry)
			if err != nil {
				return fmt.Errorf("making the schema: %w", err)
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s\n", bytes.TrimRight(text, "\n"))
			return err
		},
	}
	c.Flags().BoolVar(&part, "part", false, "print the schema of a part, which handlers use")
	c.Flags().BoolVar(&ofCases, "cases", false, "print the schema of files with cases, which operator test runs")
	return c
}

// oneForm returns the error of usage of a command that is asked for a part and for cases at once.
func oneForm(c *cobra.Command, part, ofCases bool) error {
	if part && ofCases {
		return &usageError{command: c.CommandPath(), err: errors.New("--part and --cases are two forms: give one")}
	}
	return nil
}
