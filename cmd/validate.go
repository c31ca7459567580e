// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/source"
)

// verdict is the output of validate with -o json.
type verdict struct {
	Operator  string `json:"operator,omitempty"`
	Resources int    `json:"resources,omitempty"`
	// Handlers counts those of objects and of schedules, Daemons the daemons, and Activities startups, cleanups and
	// probes.
	Handlers   int `json:"handlers,omitempty"`
	Daemons    int `json:"daemons,omitempty"`
	Indexes    int `json:"indexes,omitempty"`
	Activities int `json:"activities,omitempty"`
	// Rules counts rules about requests.
	Rules int  `json:"rules,omitempty"`
	OK    bool `json:"ok"`
	// Warnings name what could not be checked against the cluster, and what may be unexpected.
	Warnings []fault `json:"warnings,omitempty"`
	// Skipped are documents that are not part of an operator.
	Skipped []string `json:"skipped,omitempty"`
	// Views are the handlers' views, if they were asked for.
	Views []view `json:"views,omitempty"`
	// Enforced says of each rule about requests who evaluates it, if that was asked for.
	Enforced []enforced `json:"enforced,omitempty"`
	Faults   []fault    `json:"faults"`
}

// view is the view of a handler: the fields and objects whose changes run it.
type view struct {
	Resource string `json:"resource"`
	Handler  string `json:"handler"`
	LooksAt  string `json:"looksAt"`
	// Gated: its children stay as they are while its when is false. GatedSteps are the steps for which the same holds.
	Gated      bool     `json:"gated,omitempty"`
	GatedSteps []string `json:"gatedSteps,omitempty"`
}

// fault is one fault of a configuration, or a warning. Line and column are 0 if they are not known.
type fault struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	// Excerpt is the line of the file, or of a long line the part around the place, with a caret below it.
	Excerpt string `json:"excerpt,omitempty"`
}

// validateFlags are the flags of validate.
type validateFlags struct {
	files   []string
	output  string
	verbose bool
	strict  bool
	cluster bool
	kube    kubeFlags
	// allowBreaking takes a CRD that breaks stored objects for a warning.
	allowBreaking bool
}

func (p *program) validateCommand() *cobra.Command {
	f := &validateFlags{}
	c := &cobra.Command{
		Use:   "validate --config FILE|DIR",
		Short: "Check a configuration, without a cluster or against one",
		Long: `Check a configuration. Every fault is reported, with its place; with one or more of
them, the exit code is 1. Kinds, templates and expressions are checked against
the schemas that the configuration has and those of Kubernetes itself, or with
--cluster those of a cluster, which is read and not changed: it may be of another
version. What is not on the cluster is a warning. The CRDs of the configuration
are sent as a dry run then: the API server knows more of CRDs than is checked
here. One that breaks what the cluster has stored is a fault, or a warning with
--allow-breaking-schema. A schedule that would run on each of several processes,
as no leader is elected, is a warning too, and so are handlers that feed each
other: each sets what the next one looks at, and a CRD in a file beside the
configuration that is not the one that it describes. With --strict warnings are
faults, but not those about conditions that a foreign CRD drops, nor accepted
schemas. With --verbose it reports what each handler looks at, which ones keep
their children as they are while their when is false, and whether the API server
evaluates a rule about requests itself or asks the operator, and why.`,
		Example: `  operator validate --config operator.yaml
  operator validate --config samples/foo/operator.yaml -o json
  operator validate --config operator.yaml --strict
  operator validate --config operator.yaml --verbose
  operator validate --config operator.yaml --cluster`,
		Args:    noArguments,
		PreRunE: p.usage(&f.files, f.check),
		RunE: func(c *cobra.Command, _ []string) error {
			return p.validate(c.Context(), f, c.OutOrStdout())
		},
	}
	addConfig(c.Flags(), &f.files)
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "say what each handler looks at")
	c.Flags().BoolVar(&f.strict, "strict", false, "take warnings for faults, as in CI")
	c.Flags().BoolVar(&f.cluster, "cluster", false, "check against the resources and schemas of a cluster, too")
	c.Flags().BoolVar(&f.allowBreaking, allowBreaking, false, "with --cluster, warn of a schema that breaks stored objects, and do not fail")
	f.kube.add(c.Flags())
	addOutput(c.Flags(), &f.output)
	completeChoices(c)
	return c
}

// check rejects a flag that would have no effect.
func (f *validateFlags) check() error {
	if f.allowBreaking && !f.cluster {
		return errors.New("--" + allowBreaking + " needs --cluster")
	}
	return nil
}

// validate checks a configuration and prints the result.
func (p *program) validate(ctx context.Context, f *validateFlags, out io.Writer) error {
	op, err := p.operator(f.files, func(*dsl.Operator) {})
	var found checked
	if err == nil {
		found, err = p.held(ctx, f, op)
		found.warnings = slices.Concat(unled(op), loops(op), stale(op, f.files), found.warnings)
	}
	if f.strict {
		found.warnings, err = strictly(found.warnings, err)
	}
	warnings := slices.Concat(found.warnings, found.notes).Sorted()
	if f.output == "json" {
		return judge(out, op, warnings, views(f, op, err), err)
	}
	for _, warning := range warnings.Shown() {
		tellFault(p.terminal(p.Err), "warning: ", yellow, warning)
	}
	if err != nil {
		return err
	}
	v := verdictOn(op, nil)
	for _, document := range v.Skipped {
		fmt.Fprintf(p.Err, "skipped: %s (no part of an operator)\n", document)
	}
	fmt.Fprintf(out, "operator %s: %s: %s\n", v.Operator, v.contents(), p.terminal(p.Out).paint(green, "ok"))
	for _, one := range views(f, op, nil) {
		fmt.Fprintf(out, "%s: handler %s looks at %s\n", one.Resource, one.Handler, one.LooksAt)
		if one.Gated {
			fmt.Fprintf(out, "%s: handler %s keeps its children as they are while its when is false (includeWhen would delete them)\n", one.Resource, one.Handler)
		}
		for _, step := range one.GatedSteps {
			fmt.Fprintf(out, "%s: step %s keeps its children as they are while its when is false (includeWhen would delete them)\n", one.Resource, step)
		}
	}
	if f.verbose {
		for _, one := range rulesOf(op) {
			fmt.Fprintln(out, one)
		}
	}
	return nil
}

// views returns the handlers' views, if they were asked for.
func views(f *validateFlags, op *dsl.Operator, err error) (out []view) {
	if !f.verbose || err != nil {
		return nil
	}
	for r, h := range op.Handlers() {
		out = append(out, view{r.Name.String(), h.ID, looksAt(op, r, h), h.When != nil && len(h.Makers) > 0, h.Known.Gated})
	}
	return out
}

// looksAt describes for people what runs a handler.
func looksAt(op *dsl.Operator, r *dsl.Resource, h *dsl.Handler) string {
	what := op.View(h).String()
	switch {
	case h.ResourceWide:
		return "the clock alone, for it is a schedule"
	case h.Daemon != nil:
		return "the object all the time, for it is a daemon"
	case !h.On(dsl.Create) && !h.On(dsl.Update) && !h.On(dsl.Delete):
		what = ""
	case !h.On(dsl.Create) && !h.On(dsl.Update):
		what = "the deletion"
	}
	for _, c := range h.Causes {
		if more := c.Watches(); more != "" && c.Met(r, h) {
			what = strings.TrimPrefix(what+"; "+more, "; ")
		}
	}
	return cmp.Or(what, "the object once, when a process begins with it, or at each resync")
}

// addOutput adds -o, which several commands share.
func addOutput(set *pflag.FlagSet, output *string) {
	*output = "text"
	addChoice(set, &choice{value: output, noun: "format", words: []string{"text", "json"}},
		"output", "o", "how the answer is written")
}

// judge writes the verdict as JSON.
func judge(w io.Writer, op *dsl.Operator, warnings source.Faults, views []view, err error) error {
	v := verdictOn(op, err)
	v.Warnings, v.Views = inJSON(warnings), views
	if views != nil {
		v.Enforced = rulesOf(op)
	}
	if failed := writeJSON(w, v); failed != nil {
		return failed
	}
	if err != nil {
		return errPrinted
	}
	return nil
}

// inJSON returns faults, or warnings, in their JSON form.
func inJSON(list source.Faults) (out []fault) {
	for _, f := range list.Shown() {
		out = append(out, fault{File: f.File, Line: f.Line, Column: f.Column, Path: f.Path, Message: f.Message, Excerpt: f.Excerpt})
	}
	return out
}

func verdictOn(op *dsl.Operator, err error) verdict {
	v := verdict{OK: err == nil, Faults: []fault{}}
	if err != nil {
		v.Faults = inJSON(faults(err))
		return v
	}
	v.Operator, v.Resources, v.Skipped = op.Name, len(op.Resources()), op.Skipped
	for _, h := range op.Handlers() {
		if h.Daemon != nil {
			v.Daemons++
		} else {
			v.Handlers++
		}
	}
	v.Indexes, v.Rules = len(op.Indexes()), len(rulesOf(op))
	for _, c := range []dsl.Cause{dsl.Startup, dsl.Cleanup, dsl.HealthProbe, dsl.ReadyProbe} {
		v.Activities += len(op.Activities(c))
	}
	return v
}

// contents counts the parts of an operator, in words.
func (v verdict) contents() string {
	out := []string{count(v.Resources, "resource"), count(v.Handlers, "handler")}
	for _, one := range []struct {
		n          int
		name, many string
	}{{v.Daemons, "daemon", "daemons"}, {v.Indexes, "index", "indexes"}, {v.Activities, "activity", "activities"}, {v.Rules, "rule", "rules"}} {
		switch one.n {
		case 0:
		case 1:
			out = append(out, "1 "+one.name)
		default:
			out = append(out, fmt.Sprintf("%d %s", one.n, one.many))
		}
	}
	return strings.Join(out, ", ")
}

func writeJSON(w io.Writer, value any) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(value)
}
