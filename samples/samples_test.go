// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package samples_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/samples"
	"github.com/handwerk-dev/handwerk/samples/daemon/probe"
	"github.com/handwerk-dev/handwerk/samples/ephemeral-volume-claim/volumes"
	"github.com/handwerk-dev/handwerk/samples/foobar/foobar"
	"github.com/handwerk-dev/handwerk/samples/functions"
	"github.com/handwerk-dev/handwerk/samples/memo/guests"
	"github.com/handwerk-dev/handwerk/samples/podwatch/podwatch"
	"github.com/handwerk-dev/handwerk/samples/sub-handlers/fleets"
)

func TestSamplesLoad(t *testing.T) {
	files, err := filepath.Glob("*/operator.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("samples: %v, %v", files, err)
	}
	for _, file := range files {
		op, err := config.Load([]string{file}, functions.Registry())
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		nothingIsReportedOf(t, op)
		if folder := filepath.Base(filepath.Dir(file)); op.Name != folder {
			t.Errorf("%s: the operator's name is %s", file, op.Name)
		}
	}
}

var registered = regexp.MustCompile(`(\w+)\.Functions\(registry\)`)

// TestSamplesRunByTheirPrograms holds that a sample loads with the functions of its own program, which is operator where it has
// no main.go.
func TestSamplesRunByTheirPrograms(t *testing.T) {
	files, err := filepath.Glob("*/operator.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("samples: %v, %v", files, err)
	}
	for _, file := range files {
		registry := programOf(t, filepath.Dir(file))
		if _, err := config.Load([]string{file}, registry); err != nil {
			t.Error(err)
		}
	}
}

// nothingIsReportedOf holds that an operator has neither a fault nor a warning.
func nothingIsReportedOf(t *testing.T, op *dsl.Operator) {
	t.Helper()
	faults, warnings, err := config.Check(op)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range slices.Concat(faults, warnings) {
		t.Errorf("%v", found)
	}
}

// TestKopfsExamplesHaveNoWarnings holds the same for the examples of kopf.
func TestKopfsExamplesHaveNoWarnings(t *testing.T) {
	files, err := filepath.Glob("kopf/[0-9]*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("found %v (%v), want more", files, err)
	}
	for _, file := range files {
		op, err := config.Load([]string{file}, functions.Registry())
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		nothingIsReportedOf(t, op)
	}
}

// TestSamplesAreTheSameInGo holds that both routes make one operator.
func TestSamplesAreTheSameInGo(t *testing.T) {
	for _, inGo := range []*dsl.Operator{
		handlers.FooOperator(), foobar.Operator(), podwatch.Operator(), podwatch.ItemOperator(), probe.Operator(),
		volumes.Operator(), guests.Operator(), fleets.Operator(),
	} {
		t.Run(inGo.Name, func(t *testing.T) {
			inYAML, err := config.Load([]string{filepath.Join(inGo.Name, "operator.yaml")}, functions.Registry())
			if err != nil {
				t.Fatal(err)
			}
			if err := inGo.Validate(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(summary(inGo), summary(inYAML)); diff != "" {
				t.Errorf("Go and YAML differ (-go +yaml):\n%s", diff)
			}
		})
	}
}

// summary is what an engine sees of an operator, without the functions themselves.
func summary(op *dsl.Operator) []string {
	out := []string{op.Name}
	for _, r := range op.Resources() {
		out = append(out, fmt.Sprintf("%s every %s", r.Name, r.Resync))
		for name, kind := range r.Owned() {
			out = append(out, fmt.Sprintf("%s owns %s %s", r.Name, name, kind))
		}
	}
	for r, h := range op.Handlers() {
		out = append(out, fmt.Sprintf("%s %s %v field %v retries %d timeout %s finalizer %t",
			r.Name, h.ID, h.Causes, h.Fields, h.Retries, h.Timeout, !h.NoFinalizer))
	}
	return out
}

// TestOperatorCarriesTheSamplesInYAMLAlone holds that the embedded files are those of all folders without a program.
func TestOperatorCarriesTheSamplesInYAMLAlone(t *testing.T) {
	all, err := filepath.Glob("*/operator.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, operator := range all {
		folder := filepath.Dir(operator)
		if _, err := os.Stat(filepath.Join(folder, "main.go")); err == nil {
			continue
		}
		files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		parts, err := filepath.Glob(filepath.Join(folder, "*", "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, slices.Concat(files, parts)...)
	}
	var got []string
	err = fs.WalkDir(samples.Files(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			got = append(got, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("embedded files (-want +got):\n%s", diff)
	}
}
