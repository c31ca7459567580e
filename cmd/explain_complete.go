// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/handwerk-dev/handwerk/dsl/expr/manual"
)

// completeExplain returns what may follow in a command line of explain, and how the shell is to go on.
func (p *program) completeExplain(f *explainFlags, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch {
	case len(args) == 1 && asksForFunctions(args):
		return startingWith(manual.Names(), begun), cobra.ShellCompDirectiveNoFileComp
	case len(args) > 0:
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	around := begun[:max(strings.LastIndex(begun, "."), 0)]
	outline := p.outline(f)
	field, err := outline.Find(around)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []cobra.Completion
	directive := cobra.ShellCompDirectiveNoFileComp
	if strings.HasPrefix(explainFunctions, begun) {
		out = append(out, cobra.CompletionWithDesc(explainFunctions, "The functions of expressions."))
	}
	for _, block := range outline.Blocks(field) {
		for _, one := range block.Fields {
			path := strings.TrimPrefix(around+"."+one.Name, ".")
			if !strings.HasPrefix(path, begun) {
				continue
			}
			out = append(out, cobra.CompletionWithDesc(path, firstSentence(one.Doc)))
			if len(outline.Blocks(one)) > 0 {
				directive |= cobra.ShellCompDirectiveNoSpace // a dot may follow
			}
		}
	}
	return out, directive
}

// startingWith returns the words that begin with a text.
func startingWith(all []string, with string) []string {
	return slices.DeleteFunc(all, func(word string) bool { return !strings.HasPrefix(word, with) })
}

// firstSentence returns the first sentence of a text.
func firstSentence(text string) string {
	first, _, more := strings.Cut(text, ". ")
	if more {
		first += "."
	}
	return first
}
