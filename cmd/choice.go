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

// choice is the value of a flag that takes one of a few words.
type choice struct {
	value *string
	// noun is what the words are, for help.
	noun  string
	words []string
	// also are words that stand for others.
	also map[string]string
}

// String implements [pflag.Value].
func (c *choice) String() string { return *c.value }

// Type implements [pflag.Value]; help shows it as what the flag takes.
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

// list names the words, as in "text or json".
func (c *choice) list() string {
	last := len(c.words) - 1
	return strings.Join(c.words[:last], ", ") + " or " + c.words[last]
}

// addChoice adds a flag that takes one of the choice's words.
func addChoice(set *pflag.FlagSet, c *choice, name, short, usage string) {
	set.VarP(c, name, short, usage+": "+c.list())
}

// completeChoices makes the shell complete the words of every flag that takes some.
func completeChoices(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if value, ok := f.Value.(*choice); ok {
			words := cobra.FixedCompletions(value.words, cobra.ShellCompDirectiveNoFileComp)
			// An error here means that the flag does not exist, which it does.
			_ = c.RegisterFlagCompletionFunc(f.Name, words)
		}
	})
}
