// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/sandbox/cases"
)

// explainFunctions is the argument of explain that stands for the functions of expressions.
const explainFunctions = "functions"

// explainFlags are the flags of explain.
type explainFlags struct{ recursive, cases, part bool }

func (p *program) explainCommand() *cobra.Command {
	f := &explainFlags{}
	c := &cobra.Command{
		Use:   "explain [PATH | functions [NAME]]",
		Short: "Explain a field of the configuration, or the functions of expressions",
		Long: `Explain a field of the configuration: its type, its default, what it means, and which
fields are in it. Without a path: the configuration as a whole. Brackets and indexes
may be left out; the path in an error of validate will do as it is. A path of the
reference will do, too: test.cases is one of files with cases, part.parameters of parts.

With the word functions: all functions of expressions, each with an example, which
operator eval evaluates.`,
		Example: `  operator explain resources.handlers.retries
  operator explain resources.handlers.apply --recursive
  operator explain cases.steps --cases
  operator explain parameters --part
  operator explain functions
  operator explain functions merge`,
		Args: func(_ *cobra.Command, args []string) error {
			most := 1
			if asksForFunctions(args) {
				most = 2
			}
			if len(args) > most {
				return fmt.Errorf("want one path, or %s and a name, found %s", explainFunctions, count(len(args), "argument"))
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return p.completeExplain(f, args, begun)
		},
		PreRunE: func(c *cobra.Command, _ []string) error { return oneForm(c, f.part, f.cases) },
		RunE: func(c *cobra.Command, args []string) error {
			args = f.prefixed(args)
			var out strings.Builder
			if err := p.explain(&out, f, args); err != nil {
				return &usageError{command: c.CommandPath(), err: err}
			}
			_, err := io.WriteString(c.OutOrStdout(), strings.TrimPrefix(out.String(), "\n"))
			return err
		},
	}
	c.Flags().BoolVar(&f.recursive, "recursive", false, "show all fields below, with their types alone")
	c.Flags().BoolVar(&f.cases, "cases", false, "explain files with cases, which operator test runs")
	c.Flags().BoolVar(&f.part, "part", false, "explain a part, which handlers use and which has a file of its own")
	return c
}

// prefixed returns the arguments without a prefix of the reference, such as test in test.cases. It sets the flag that
// stands for the prefix.
func (f *explainFlags) prefixed(args []string) []string {
	if len(args) != 1 {
		return args
	}
	prefix, rest, _ := strings.Cut(args[0], ".")
	switch {
	case prefix == "test":
		f.cases = true
	case prefix == "part":
		f.part = true
	case prefix == explainFunctions && rest != "":
		return []string{explainFunctions, rest}
	default:
		return args
	}
	return []string{rest}
}

// explain answers the command. An error is one of usage.
func (p *program) explain(out io.Writer, f *explainFlags, args []string) error {
	if asksForFunctions(args) {
		return tellFunctions(out, args[1:])
	}
	outline := p.outline(f)
	field, err := outline.Find(strings.Join(args, ""))
	if err != nil {
		return err
	}
	tellField(out, field)
	for _, block := range outline.Blocks(field) {
		title := "FIELDS"
		if block.Title != "" {
			title += " (" + block.Title + ")"
		}
		fmt.Fprintf(out, "\n%s:\n", title)
		if f.recursive {
			tellNames(out, outline, block, "  ")
		} else {
			tellFields(out, block)
		}
	}
	return nil
}

func asksForFunctions(args []string) bool { return len(args) > 0 && args[0] == explainFunctions }

// outline returns what people read about the form that the flags name.
func (p *program) outline(f *explainFlags) *form.Outline {
	switch {
	case f.cases:
		return form.NewOutline(cases.Describe())
	case f.part:
		return form.NewOutline(config.DescribePart(p.registry))
	}
	return form.NewOutline(config.Describe(p.registry))
}

// tellField writes what is known of a field itself.
func tellField(out io.Writer, field form.Field) {
	row := func(name, text string) {
		if text != "" {
			fmt.Fprintf(out, "%-12s%s\n", name+":", text)
		}
	}
	if field.Place != "" {
		row("FIELD", fmt.Sprintf("%s <%s>", field.Place, field.Type))
	}
	if field.Required {
		row("REQUIRED", "yes")
	}
	row("DEFAULT", field.Default)
	row("IN", strings.Join(field.In, ", "))
	if field.Doc != "" {
		fmt.Fprintf(out, "\nDESCRIPTION:\n%s", wrapped(field.Doc))
	}
	if field.Words != "" {
		fmt.Fprintf(out, "\nWORDS:\n%s", wrapped(field.Words))
	}
}

// tellFields writes the fields of a map with their descriptions.
func tellFields(out io.Writer, block form.Block) {
	for i, field := range block.Fields {
		if i > 0 && field.Doc != "" {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "  %s\n%s", oneLineOf(field), wrapped(field.Doc))
	}
}

// tellNames writes the fields of a map, and those below them.
func tellNames(out io.Writer, outline *form.Outline, block form.Block, indent string) {
	for _, field := range block.Fields {
		fmt.Fprintf(out, "%s%s\n", indent, oneLineOf(field))
		for _, below := range outline.Blocks(field) {
			if below.Foreign() {
				continue
			}
			if below.Title != "" {
				fmt.Fprintf(out, "%s  (%s)\n", indent, below.Title)
			}
			tellNames(out, outline, below, indent+"  ")
		}
	}
}

// oneLineOf is a field without its description.
func oneLineOf(field form.Field) string {
	out := fmt.Sprintf("%s <%s>", field.Name, field.Type)
	switch {
	case field.Required:
		out += " required"
	case field.Default != "":
		out += " default: " + field.Default
	}
	return out
}

// wrapped breaks a text into indented lines for a terminal, each with an end.
func wrapped(text string) string {
	const width, indent = 80, "    "
	var out strings.Builder
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(indent+line+" "+word) > width {
			out.WriteString(indent + line + "\n")
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	if line != "" {
		out.WriteString(indent + line + "\n")
	}
	return out.String()
}
