// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"io"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl"
)

func (p *program) crdCommand() *cobra.Command {
	var files []string
	output := "yaml"
	c := &cobra.Command{
		Use:   "crd --config FILE|DIR",
		Short: "Print the CRDs that a configuration describes",
		Long: `Print the CustomResourceDefinition of every resource that has a schema, for
kubectl apply. In Go, crd.Describe makes the schema from a type. As JSON, they are
the items of a List.`,
		Example: `  operator crd --config operator.yaml | kubectl apply -f -
  operator crd --config operator.yaml > crd.yaml`,
		Args:    noArguments,
		PreRunE: p.usage(&files),
		RunE: func(c *cobra.Command, _ []string) error {
			op, err := p.operator(files, func(*dsl.Operator) {})
			if err != nil {
				return err
			}
			crds := crdsOf(op)
			if len(crds) == 0 {
				return errors.New("there are no CRDs to print: no resource has a schema (in Go, crd.Describe makes it from a type)")
			}
			if output == "json" {
				list := map[string]any{"apiVersion": "v1", "kind": "List", "items": crds}
				return writeJSON(c.OutOrStdout(), list)
			}
			return writeYAML(c.OutOrStdout(), crds)
		},
	}
	addConfig(c.Flags(), &files)
	addChoice(c.Flags(), &choice{value: &output, noun: "format", words: []string{"yaml", "json"}},
		"output", "o", "how the CRDs are written")
	completeChoices(c)
	return c
}

// crdsOf returns the CRDs of an operator's resources.
func crdsOf(op *dsl.Operator) (out []map[string]any) {
	for _, r := range op.Resources() {
		if r.CRD != nil {
			out = append(out, r.CRD)
		}
	}
	return out
}

// writeYAML writes values as a YAML stream, which is empty without values.
func writeYAML[T any](w io.Writer, values []T) error {
	if len(values) == 0 {
		return nil // the encoder cannot be closed before it has encoded something
	}
	out := yaml.NewEncoder(w)
	out.SetIndent(2)
	for _, o := range values {
		if err := out.Encode(o); err != nil {
			return err
		}
	}
	return out.Close()
}
