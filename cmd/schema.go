// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/handwerk-dev/handwerk/dsl/config"
)

func (p *program) schemaCommand() *cobra.Command {
	part := false
	c := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the configuration",
		Long: `Print the JSON Schema of the configuration, with the actions and functions of this
very program, or with --part that of a part, which has a file of its own. Editors
complete and check the files with it.`,
		Example: `  operator schema > operator.schema.json
  operator schema --part > part.schema.json
  # and at the top of operator.yaml, for editors with the YAML language server:
  # yaml-language-server: $schema=operator.schema.json`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			of := p.schema
			if part {
				of = config.PartSchema
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
	return c
}
