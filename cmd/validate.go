// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/handwerk-dev/handwerk/dsl"
)

// verdict is what validate says with -o json.
type verdict struct {
	Operator  string  `json:"operator,omitempty"`
	Resources int     `json:"resources,omitempty"`
	Handlers  int     `json:"handlers,omitempty"`
	OK        bool    `json:"ok"`
	Faults    []fault `json:"faults"`
}

// fault is one mistake in a configuration. Line and column are 0 where they are not known.
type fault struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
}

func (p *program) validateCommand() *cobra.Command {
	var files []string
	var output string
	c := &cobra.Command{
		Use:   "validate --config FILE|DIR",
		Short: "Check a configuration without a cluster",
		Long: `Check a configuration without a cluster. Every fault is told, with its place; with
one or more of them, the exit code is 1.`,
		Example: `  operator validate --config operator.yaml
  operator validate --config samples/foo -o json`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := p.needConfig(files); err != nil {
				return &usageError{command: c.CommandPath(), err: err}
			}
			op, err := p.operator(files, func(*dsl.Operator) {})
			if output == "json" {
				return judge(c.OutOrStdout(), op, err)
			}
			if err != nil {
				return err
			}
			v := verdictOn(op, nil)
			fmt.Fprintf(c.OutOrStdout(), "operator %s: %s, %s: ok\n",
				v.Operator, count(v.Resources, "resource"), count(v.Handlers, "handler"))
			return nil
		},
	}
	addConfig(c.Flags(), &files)
	addOutput(c.Flags(), &output)
	completeChoices(c)
	return c
}

// addOutput adds -o, which several commands have.
func addOutput(set *pflag.FlagSet, output *string) {
	*output = "text"
	addChoice(set, &choice{value: output, noun: "format", words: []string{"text", "json"}},
		"output", "o", "how the answer is written")
}

// judge writes the verdict for machines.
func judge(w io.Writer, op *dsl.Operator, err error) error {
	if failed := writeJSON(w, verdictOn(op, err)); failed != nil {
		return failed
	}
	if err != nil {
		return errTold
	}
	return nil
}

func verdictOn(op *dsl.Operator, err error) verdict {
	v := verdict{OK: err == nil, Faults: []fault{}}
	if err != nil {
		for _, f := range faults(err) {
			v.Faults = append(v.Faults, fault{File: f.File, Line: f.Line, Column: f.Column, Path: f.Path, Message: f.Message})
		}
		return v
	}
	v.Operator, v.Resources = op.Name, len(op.Resources())
	dsl.Walk(op, func(*dsl.Resource, *dsl.Handler) { v.Handlers++ })
	return v
}

func writeJSON(w io.Writer, value any) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(value)
}
