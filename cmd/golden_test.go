// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGolden compares all that a person sees of a command line: exit code, stdout and stderr.
func TestGolden(t *testing.T) {
	tests := map[string]struct {
		args  string
		env   []string
		extra func(*dsl.Operator)
		run   func(context.Context) error
	}{
		"help":                            {args: ""},
		"help-run":                        {args: "run --help"},
		"help-play":                       {args: "play --help"},
		"help-plan":                       {args: "plan --help"},
		"help-sandbox":                    {args: "sandbox --help"},
		"sandbox-without-nodes":           {args: "sandbox --nodes 0"},
		"sandbox-with-faults":             {args: "sandbox --load testdata/objects.yaml --crds testdata/objects.yaml --load -"},
		"help-test":                       {args: "test --help"},
		"test-without-time":               {args: "test --timeout 0s"},
		"test-where-there-are-no-cases":   {args: "test testdata/crd"},
		"help-validate":                   {args: "validate --help"},
		"help-cleanup":                    {args: "cleanup --help"},
		"cleanup-without-config":          {args: "cleanup"},
		"help-pause":                      {args: "pause --help"},
		"help-resume":                     {args: "resume --help"},
		"help-retry":                      {args: "retry --help"},
		"help-migrate":                    {args: "migrate --help"},
		"migrate-without-a-crd":           {args: "migrate foos"},
		"retry-without-a-name":            {args: "retry website --operator foo"},
		"why-of-a-name-with-a-namespace":  {args: "why website/shop/home"},
		"tree-of-a-name-with-a-namespace": {args: "tree website/shop/home"},
		"pause-without-a-reason":          {args: "pause --operator foo"},
		"pause-without-an-operator":       {args: "pause -m looking"},
		"pause-for-no-time":               {args: "pause --operator foo -m looking --for 0s"},
		"help-why":                        {args: "why --help"},
		"why-without-an-object":           {args: "why"},
		"why-without-a-name":              {args: "why foos"},
		"help-status":                     {args: "status --help"},
		"help-tree":                       {args: "tree --help"},
		"tree-without-name":               {args: "tree website"},
		"status-without-address":          {args: "status --address localhost"},
		"help-schema":                     {args: "help schema"},
		"help-explain":                    {args: "explain --help"},
		"help-version":                    {args: "version -h"},
		"unknown-command":                 {args: "frobnicate"},
		"unknown-command-near-one":        {args: "valdate --config foo.yaml"},
		"unknown-shell":                   {args: "completion tcsh"},
		"unknown-flag":                    {args: "run --confg foo.yaml"},
		"unknown-argument":                {args: "validate foo.yaml"},
		"unknown-argument-directory":      {args: "graph testdata"},
		"unknown-argument-other":          {args: "validate webapp"},
		"breaking-schema-for-nothing":     {args: "validate --config foo.yaml --allow-breaking-schema"},
		"impossible-namespace":            {args: "run --config foo.yaml -n team-a,Team_B"},
		"impossible-namespace-for-roles":  {args: "rbac --config foo.yaml -n !Team_B"},
		"unknown-argument-after-election": {args: "run --config foo.yaml --leader-elect life"},
		"unknown-choice":                  {args: "run --config foo.yaml --zap-encoder xml"},
		"unknown-choice-in-env":           {args: "run --config foo.yaml", env: []string{"HANDWERK_LEADER_ELECT=maybe"}},
		"unknown-level":                   {args: "run --config foo.yaml --zap-log-level 0"},
		"negative-grace-period":           {args: "run --config foo.yaml --grace-period -1s"},
		"config-without-value":            {args: "run --config"},
		"run-without-config":              {args: "run"},
		"run-with-faults":                 {args: "run --config bad.yaml"},
		"run-that-fails":                  {args: "run --config foo.yaml --health-probe-bind-address 0 --metrics-bind-address 0 --debug-bind-address 0 --zap-log-level error", run: func(context.Context) error { return errLost }},
		"validate":                        {args: "validate --config foo.yaml"},
		"validate-from-env":               {args: "validate", env: []string{"HANDWERK_CONFIG=foo.yaml"}},
		"validate-without-config":         {args: "validate"},
		"validate-with-faults":            {args: "validate --config bad.yaml"},
		"validate-what-is-not-there":      {args: "validate --config none.yaml"},
		"validate-json":                   {args: "validate --config foo.yaml -o json"},
		"validate-json-with-faults":       {args: "validate --config bad.yaml -o json"},
		"validate-json-not-there":         {args: "validate --config none.yaml -o json"},
		"validate-with-go":                {args: "validate --config foo.yaml", extra: addBars},
		"validate-go-alone":               {args: "validate", extra: func(op *dsl.Operator) { op.Name = "bar"; addBars(op) }},
		"validate-verbose":                {args: "validate --config foo.yaml --verbose", extra: addLoop},
		"validate-json-verbose":           {args: "validate -v -o json", extra: addLoop},
		"validate-schedule-unled":         {args: "validate", extra: addCensus(dsl.LeaderNone)},
		"validate-json-schedule-unled":    {args: "validate -o json", extra: addCensus(dsl.LeaderNone)},
		"validate-strict":                 {args: "validate --strict", extra: addCensus(dsl.LeaderNone)},
		"validate-strict-all-well":        {args: "validate --strict", extra: addCensus(dsl.LeaderLease)},
		"validate-schedule-led":           {args: "validate", extra: addCensus(dsl.LeaderLease)},
		"validate-go-with-faults":         {args: "validate", extra: func(op *dsl.Operator) { addBars(op); addBars(op) }},
		"validate-json-go-with-faults":    {args: "validate -o json", extra: func(op *dsl.Operator) { addBars(op); addBars(op) }},
		"schema":                          {args: "schema"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, test.env...)
			if test.run != nil {
				b.run = test.run
			}
			if test.extra != nil {
				b.extra = []func(*dsl.Operator){test.extra}
			}
			code := b.execute(t.Context(), strings.Fields(test.args))
			got := fmt.Sprintf("$ %s\n-- exit %d --\n-- stdout --\n%s-- stderr --\n%s",
				strings.Join(append(test.env, strings.TrimSpace("operator "+test.args)), " "), code, b.out.String(), b.err.String())
			compareGolden(t, name, got)
		})
	}
}

func addBars(op *dsl.Operator) {
	op.Resource("bars.v1.example.com", func(r *dsl.Resource) { r.OnReconcile("only", nothing) })
}

// addLoop adds handlers of each kind of view; two of them feed each other.
func addLoop(op *dsl.Operator) {
	op.Name = "foo"
	op.Resource("loops.v1.example.com", func(r *dsl.Resource) {
		r.Owns("configmaps")
		fed := func(reads, sets string, children bool) dsl.Option {
			return func(h *dsl.Handler) {
				h.Known.Reads = dsl.KnownReads{Paths: []dsl.Path{dsl.MustParsePath(reads)}, Children: children, Only: true}
				h.Known.Sets = []dsl.Path{dsl.MustParsePath(sets)}
			}
		}
		r.OnReconcile("ping", nothing, fed("status.pong", "status.ping", false))
		r.OnReconcile("pong", nothing, fed("status.ping", "status.pong", true), dsl.Makes("pong"),
			dsl.When(func(*dsl.Subject) (bool, error) { return false, nil }))
		r.OnCreate("new", nothing)
		r.OnField("spec.size", "size", nothing, dsl.Field("spec.color"))
		r.OnEvent("all", nothing)
		r.OnDelete("last", nothing)
		r.OnChild("below", nothing)
		r.OnResume("first", nothing)
	})
}

// addCensus makes it an operator with a schedule, in this mode of leadership.
func addCensus(mode dsl.LeaderMode) func(*dsl.Operator) {
	return func(op *dsl.Operator) {
		op.Name = "bar"
		op.Settings.LeaderElection.Mode = mode
		op.Resource("bars.v1.example.com", func(r *dsl.Resource) {
			r.OnReconcile("only", nothing)
			r.Schedule(dsl.Timing{Every: time.Hour}, "census", nothing)
		})
	}
}

func TestCompletion(t *testing.T) {
	tests := map[string]struct {
		args string
		want string
	}{
		"bash gets a script":          {"completion bash", "# bash completion V2 for operator"},
		"zsh gets a script":           {"completion zsh", "#compdef operator"},
		"fish gets a script":          {"completion fish", "# fish completion for operator"},
		"commands are completed":      {"__complete va", "validate\tCheck a configuration"},
		"the words of a flag are too": {"__complete run --zap-encoder j", "json\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if code := b.execute(t.Context(), strings.Fields(test.args)); code != exitOK {
				t.Errorf("exit code %d: %s", code, b.err.String())
			}
			if got := b.out.String(); !strings.Contains(got, test.want) {
				t.Errorf("got %.300q, want %q in it", got, test.want)
			}
		})
	}
}
