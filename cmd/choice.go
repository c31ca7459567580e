// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// choice is the value of a flag that accepts one of a few words.
type choice struct {
	value *string
	// noun is the kind of the words, for help.
	noun  string
	words []string
	// also are synonyms of the words.
	also map[string]string
}

// String implements [pflag.Value].
func (c *choice) String() string { return *c.value }

// Type implements [pflag.Value]; help shows it as the kind of the value.
func (c *choice) Type() string { return c.noun }

// Set implements [pflag.Value].
func (c *choice) Set(text string) error {
	word := strings.ToLower(text)
	if other, found := c.also[word]; found {
		word = other
	}
	if !slices.Contains(c.words, word) {
		return fmt.Errorf("want %s", c.list())
	}
	*c.value = word
	return nil
}

// list lists the words, as in "text or json".
func (c *choice) list() string {
	last := len(c.words) - 1
	return strings.Join(c.words[:last], ", ") + " or " + c.words[last]
}

// addChoice adds a flag that accepts one of the choice's words.
func addChoice(set *pflag.FlagSet, c *choice, name, short, usage string) {
	set.VarP(c, name, short, usage+": "+c.list())
}

// completeChoices adds shell completion for the flags that accept one of a few words.
func completeChoices(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if value, ok := f.Value.(*choice); ok {
			words := cobra.FixedCompletions(value.words, cobra.ShellCompDirectiveNoFileComp)
			// The only possible error is that the flag does not exist.
			_ = c.RegisterFlagCompletionFunc(f.Name, words)
		}
	})
}
