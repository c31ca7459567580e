// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/handwerk-dev/handwerk/cmd/test"
	"github.com/handwerk-dev/handwerk/sandbox/cases"
)

// testFlags are the flags of test.
type testFlags struct {
	pattern, output string
	coverage        bool
	update          bool
	timeout         time.Duration
}

func (p *program) testCommand() *cobra.Command {
	f := &testFlags{}
	c := &cobra.Command{
		Use:   "test [PATH...]",
		Short: "Test an operator by cases in YAML, without a cluster",
		Long: `Test an operator by cases in YAML, without a cluster. Cases stand in files beside
the operator whose names end with _test.yaml; a directory stands for those in it and
below. Without a path, the cases are those of this directory. Each case runs the
operator against an API server in memory that checks objects as a real one does, in
which workloads become ready, and in virtual time: an hour costs nothing. With one
failure or more, the exit code is 1.`,
		Example: `  operator test
  operator test samples --run Deployment
  operator test samples/foo --update
  operator test samples/foo -o junit > report.xml`,
		Args: cobra.ArbitraryArgs,
		PreRunE: func(c *cobra.Command, _ []string) error {
			if _, err := regexp.Compile(f.pattern); err != nil {
				return &usageError{command: c.CommandPath(), err: fmt.Errorf("invalid value for --run: %w", err)}
			}
			if f.timeout <= 0 {
				return &usageError{command: c.CommandPath(), err: fmt.Errorf("invalid value for --timeout: want more than 0s, found %s", f.timeout)}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if lookup(p.Env, test.Worker) != "" {
				return test.Work(cases.NewSuite(p.registry, p.extra...), p.In)
			}
			if len(args) == 0 {
				args = []string{"."}
			}
			return p.test(c.Context(), f, args)
		},
	}
	c.Flags().StringVar(&f.pattern, "run", "", "run the cases whose names match the regular expression `REGEXP`")
	c.Flags().BoolVar(&f.coverage, "coverage", false,
		"say which handlers, answers of their conditions, and transitions of machines no case has run")
	c.Flags().BoolVar(&f.update, "update", false, "make expectations that fail be what was found, in the files of the cases")
	c.Flags().DurationVar(&f.timeout, "timeout", 2*time.Minute, "fail a case that does not go on for so `long`")
	f.output = "text"
	addChoice(c.Flags(), &choice{value: &f.output, noun: "format", words: []string{"text", "json", "junit"}},
		"output", "o", "how the answer is written")
	completeChoices(c)
	return c
}

// progress returns the terminal for the progress of cases; nil if there is none.
func (p *program) progress() io.Writer {
	if p.terminal(p.Err).width > 0 {
		return p.Err
	}
	return nil
}

// test runs cases and reports what came of them.
func (p *program) test(ctx context.Context, f *testFlags, paths []string) error {
	files, err := cases.Find(paths)
	if err != nil {
		return fmt.Errorf("finding cases: %w", err)
	}
	if len(files) == 0 {
		return fmt.Errorf("finding cases: there is no *_test.yaml in %v", paths)
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the program: %w", err)
	}
	reports, covered, err := test.Run(ctx, test.Settings{Progress: p.progress(), Files: files, Pattern: f.pattern, Coverage: f.coverage, Timeout: f.timeout, Program: program, Args: []string{"test", "-"}, Env: p.Env})
	if err != nil {
		return err
	}
	out := p.terminal(p.Out) // a file of cases may be of somebody else
	also := out
	if f.output != "text" {
		also = tame{Writer: p.Err} // the answer has a form of its own
	}
	if f.update {
		if err := test.Update(also, reports); err != nil {
			return fmt.Errorf("updating cases: %w", err)
		}
	}
	write := map[string]func() error{
		"text":  func() error { return test.Text(out, reports, out.colors) },
		"json":  func() error { return test.JSON(out, reports) },
		"junit": func() error { return test.JUnit(out, reports) },
	}[f.output]
	if err := write(); err != nil {
		return err
	}
	if f.coverage {
		if err := test.Coverage(also, covered); err != nil {
			return err
		}
	}
	if test.Failed(reports) {
		return errPrinted
	}
	if len(reports) == 0 {
		return fmt.Errorf("choosing cases: no case has a name that matches --run %q", f.pattern)
	}
	return nil
}
