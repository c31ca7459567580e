// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"io"

	"github.com/handwerk-dev/handwerk/dsl/expr/manual"
	"github.com/handwerk-dev/handwerk/dsl/words"
)

// tellFunctions writes all functions of expressions, or the one with a name. An unknown name is an error.
func tellFunctions(out io.Writer, names []string) error {
	if len(names) == 0 {
		for i, group := range manual.Groups() {
			if i > 0 {
				fmt.Fprintln(out)
			}
			fmt.Fprintf(out, "%s:\n", group.Title)
			for _, f := range group.Functions {
				tellFunction(out, f)
			}
		}
		return nil
	}
	found := manual.Named(names[0])
	if len(found) == 0 {
		hint := "operator explain functions lists them"
		if meant, near := words.Nearest(names[0], manual.Names()); near {
			hint = fmt.Sprintf("did you mean %q?", meant)
		}
		return fmt.Errorf("unknown function %q (%s)", names[0], hint)
	}
	for _, f := range found {
		tellFunction(out, f)
	}
	return nil
}

// tellFunction writes what is known of a function.
func tellFunction(out io.Writer, f manual.Function) {
	fmt.Fprintf(out, "\n  %s: %s\n%s      %s → %s\n", f.Call, f.Gives, wrapped(f.Doc), f.Example, f.Result)
}
