// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command reference writes docs/reference.md: every field of a configuration, of parts and of files with cases, and every
// function of expressions. `make reference` runs it. All texts are those of the code.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/dsl/crd"
	"github.com/handwerk-dev/handwerk/dsl/expr/manual"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/sandbox/cases"
)

func main() {
	if err := os.WriteFile("docs/reference.md", []byte(page()), 0o600); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

const beginning = `# Reference

<!-- made by make reference from the texts of the code: edit them there -->

Every field of a [configuration](#the-configuration), of [parts](#parts) and of [files with cases](#files-with-cases), and every
[function](#functions) of expressions. ` + "`operator explain`" + ` says the same in a terminal. What the fields are for, and how they play
together, [the language](language.md) explains.

A section describes one map. Its heading is the path of the map: lists have ` + "`[]`" + ` behind their names, and ` + "`<name>`" + ` stands
for each key of a map with keys of your choice. A field without a default may be left out, unless it is required. A
duration is a number with a unit, such as ` + "`500ms`, `30s`, `10m` or `1h30m`" + `. ` + "`${…}`" + ` stands for text with an expression in
it; a CEL expression, or a condition, is written alone or as one ` + "`${…}`" + `.

A link can lead to a field by its path, as ` + "`operator explain`" + ` takes it: [reference.md#resources.handlers.retries](#resources.handlers.retries).
Fields of parts have ` + "`part.`" + ` before their paths, those of files with cases ` + "`test.`" + `, and functions ` + "`functions.`" + `.
`

const aboutFunctions = `
Expressions know these functions, and no others. Each example is evaluated by a test as it stands, and can be by
` + "`operator eval`" + `; what it gives is written as JSON. ` + "`operator explain functions NAME`" + ` shows one of them.
`

// page returns the whole page.
func page() string {
	operator := newSections(form.NewOutline(config.Describe(handlers.Standard())), "The document")
	parts := newSections(form.NewOutline(config.DescribePart(handlers.Standard())), "The part")
	files := newSections(form.NewOutline(cases.Describe()), "The file")
	var out strings.Builder
	out.WriteString(beginning)
	out.WriteString("\n## The configuration\n\n" + operator.contents())
	causes(&out)
	operator.write(&out)
	markers(&out)
	out.WriteString("\n## Parts\n\nA part is a file of its own; a handler, or a step, that has `use` does what the part says.\n")
	parts.without(operator)
	parts.within, files.within = "part.", "test."
	parts.write(&out)
	out.WriteString("\n## Files with cases\n\nWhat `operator test` runs; [testing.md](testing.md) explains it.\n\n" + files.contents())
	files.write(&out)
	out.WriteString("\n## Functions\n" + aboutFunctions)
	functions(&out)
	return out.String()
}

// causes writes the table of causes.
func causes(out *strings.Builder) {
	out.WriteString("\n### The causes\n\nWhy a handler runs; its field `causes` lists them, and `reconcile` is short for several.\n\n")
	out.WriteString("| cause | the handler runs when | in `reconcile` |\n|---|---|---|\n")
	level := map[dsl.Cause]bool{}
	for _, c := range dsl.ReconcileCauses() {
		level[c] = true
	}
	for _, c := range dsl.Causes() {
		fmt.Fprintf(out, "| `%s` | %s | %s |\n", c, c.Doc(), map[bool]string{true: "yes", false: "no"}[level[c]])
	}
}

// markers writes the table of the markers of schemas.
func markers(out *strings.Builder) {
	out.WriteString("\n### The markers\n\nA field in `schema` is a type and, behind a bar, markers of the form `name=value`.\n\n| marker | value | for | meaning |\n|---|---|---|---|\n")
	for _, m := range crd.Markers() {
		fits := "every type"
		if m.Fits != nil {
			fits = strings.Join(m.Fits, ", ")
		}
		fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", m.Name, m.Value, fits, text(m.Doc))
	}
}

// functions writes a table for each group of functions.
func functions(out *strings.Builder) {
	seen := map[string]bool{}
	for _, group := range manual.Groups() {
		fmt.Fprintf(out, "\n### %s\n\n| call | gives | meaning | example |\n|---|---|---|---|\n", group.Title)
		for _, f := range group.Functions {
			also, targets := "", ""
			for _, name := range f.Names { // the first of several entries of a name has the target
				if !seen[name] {
					targets, seen[name] = targets+target("functions."+name), true
				}
			}
			if len(f.Names) > 1 {
				also = " " + listed(f.Names)
			}
			fmt.Fprintf(out, "| %s%s | %s | %s%s | %s → %s |\n", targets, code(f.Call), f.Gives, text(f.Doc), also, code(f.Example), code(f.Result))
		}
	}
}

// listed says which names share an entry.
func listed(names []string) string {
	var out []string
	for _, name := range names {
		out = append(out, code(name))
	}
	return "(" + strings.Join(out, ", ") + ")"
}
