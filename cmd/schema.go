// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"
)

func (p *program) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the configuration",
		Long: `Print the JSON Schema of the configuration, with the actions and functions of this
very program. Editors complete and check the configuration with it.`,
		Example: `  operator schema > operator.schema.json
  # and at the top of operator.yaml, for editors with the YAML language server:
  # yaml-language-server: $schema=operator.schema.json`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			text, err := p.schema(p.registry)
			if err != nil {
				return fmt.Errorf("making the schema: %w", err)
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s\n", bytes.TrimRight(text, "\n"))
			return err
		},
	}
}
