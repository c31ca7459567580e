// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/source"
)

func (p *program) evalCommand() *cobra.Command {
	var file, output string
	c := &cobra.Command{
		Use:   "eval EXPRESSION",
		Short: "Evaluate an expression, and say its type and its cost",
		Long: `Evaluate an expression as a handler does. self is the first object of the file, old
is null, and there are no children, related objects and indexes. The value goes to
stdout, its type and what the evaluation cost to stderr. operator explain functions
lists what expressions can call.`,
		Example: `  operator eval 'self.spec.replicas * 2' -f deployment.yaml
  operator eval '[3, 1, 2].sort()' -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("want one expression, found %s (quotes keep it together)", count(len(args), "argument"))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			object, err := objectIn(file)
			if err != nil {
				return err
			}
			got, err := try(args[0], object)
			if err != nil {
				return fmt.Errorf("evaluating %s: %w", args[0], err)
			}
			if err := writeValue(c.OutOrStdout(), output, got.Value); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.ErrOrStderr(), "%s; it cost %d of at most %d\n", got.Type, got.Cost, expr.MostCost)
			return err
		},
	}
	c.Flags().StringVarP(&file, "file", "f", "", "a YAML file with the `object` that is self")
	addChoice(c.Flags(), &choice{value: &output, noun: "format", words: []string{"yaml", "json"}}, "output", "o", "how the value is written")
	completeChoices(c)
	return c
}

// objectIn returns the first object of a file, and an empty one if there is no file.
func objectIn(file string) (*unstructured.Unstructured, error) {
	if file == "" {
		return &unstructured.Unstructured{Object: map[string]any{}}, nil
	}
	all, err := source.Objects(file)
	if err == nil && len(all) == 0 {
		err = errors.New("it has no object (want apiVersion and kind)")
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return all[0], nil
}

// try evaluates an expression over an object.
func try(text string, object *unstructured.Unstructured) (expr.Trial, error) {
	compiler, err := expr.New()
	if err != nil {
		return expr.Trial{}, err
	}
	program, err := compiler.Generating().Alone(text) // a try keeps nothing
	if err != nil {
		return expr.Trial{}, err
	}
	return program.Try(expr.Scope{Subject: &dsl.Subject{Object: object, Now: time.Now()}})
}

// writeValue writes a value of any kind. None, which an absent optional gives, is written as null.
func writeValue(w io.Writer, format string, value any) error {
	if value == expr.None {
		value = nil
	}
	if format == "json" {
		return writeJSON(w, value)
	}
	return writeYAML(w, []any{value})
}
