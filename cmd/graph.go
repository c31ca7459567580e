// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/draw"
	"github.com/handwerk-dev/handwerk/dsl/draw/svg"
)

// graphFormats are the formats of graph, in the order of help.
var graphFormats = []string{"mermaid", "dot", "svg"}

// graphEndings are the formats for endings of files.
var graphEndings = map[string]string{".md": "mermaid", ".dot": "dot", ".gv": "dot", ".svg": "svg"}

// graphFlags are the flags of graph.
type graphFlags struct {
	files                []string
	format, machine, out string
}

// check rejects --out svg, which should be --format svg, and a file whose format is not known.
func (f *graphFlags) check() error {
	if slices.Contains(graphFormats, f.out) {
		return fmt.Errorf("--out: want a file, found %q (write --format %s)", f.out, f.out)
	}
	end := filepath.Ext(f.out)
	if _, known := graphEndings[end]; end != "" && !known && f.format == "" {
		return fmt.Errorf("--out: want a file that ends in %s, found %q (or give --format)", strings.Join(slices.Sorted(maps.Keys(graphEndings)), ", "), f.out)
	}
	return nil
}

func (p *program) graphCommand() *cobra.Command {
	f := &graphFlags{}
	c := &cobra.Command{
		Use:   "graph --config FILE|DIR",
		Short: "Draw an operator and its machines",
		Long: `Draw an operator: its resources and handlers, what they look at, make and wait
for. Each of its machines follows: states, ways from one to another, time-outs
(dashed, as is a budget of failures that is used up) and what only a person does
(thick). With --machine, that machine alone.

Formats: mermaid is Markdown, with a title and a block for each drawing, which
GitHub, GitLab and others show as pictures; dot is for Graphviz, with a graph for
each; svg is one picture with all of them, each with a legend, and takes no
other program. Without --format, the ending of the file decides: .md, .dot, .gv or
.svg. Without a file, mermaid is the default.`,
		Example: `  operator graph --config operator.yaml >> README.md
  operator graph --config operator.yaml -o operator.svg
  operator graph --config operator.yaml --machine rollouts/machine -o rollout.svg
  operator graph --config operator.yaml --format dot | dot -Tpdf -O`,
		Args:    noArguments,
		PreRunE: p.usage(&f.files, f.check),
		RunE: func(c *cobra.Command, _ []string) error {
			return p.graph(f, c.OutOrStdout())
		},
	}
	addConfig(c.Flags(), &f.files)
	addChoice(c.Flags(), &choice{value: &f.format, noun: "format", words: graphFormats}, "format", "", "how it is drawn")
	c.Flags().StringVar(&f.machine, "machine", "", "draw this machine alone: `[RESOURCE/]NAME`; one without a name is called "+dsl.DefaultMachineID)
	c.Flags().StringVarP(&f.out, "out", "o", "", "write to this `FILE` and not to stdout")
	completeChoices(c)
	return c
}

// graph draws the operator or a machine.
func (p *program) graph(f *graphFlags, out io.Writer) error {
	op, err := p.operator(f.files, func(*dsl.Operator) {})
	if err != nil {
		return err
	}
	drawings := draw.All(op)
	if f.machine != "" {
		one, err := draw.Named(op, f.machine)
		if err != nil {
			return err
		}
		drawings = []draw.Drawing{one}
	}
	write := map[string]func([]draw.Drawing) string{"mermaid": draw.Mermaid, "dot": draw.Dot, "svg": svg.Render}
	text := write[cmp.Or(f.format, graphEndings[filepath.Ext(f.out)], "mermaid")](drawings)
	if f.out == "" {
		_, err = io.WriteString(out, text)
		return err
	}
	if err := os.WriteFile(f.out, []byte(text), 0o644); err != nil {
		return fmt.Errorf("writing drawing: %w", err)
	}
	return nil
}
