// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
)

func TestSamplesLoad(t *testing.T) {
	files, err := filepath.Glob("../samples/*/operator.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("samples: %v, %v", files, err)
	}
	for _, file := range files {
		op, err := config.Load([]string{file}, handlers.Standard())
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		nothingIsToldOf(t, op)
		if folder := filepath.Base(filepath.Dir(file)); op.Name != folder {
			t.Errorf("%s: the operator's name is %s", file, op.Name)
		}
	}
}

// nothingIsToldOf holds that there is neither a fault nor a warning of an operator.
func nothingIsToldOf(t *testing.T, op *dsl.Operator) {
	t.Helper()
	faults, warnings, err := config.Check(op)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range slices.Concat(faults, warnings) {
		t.Errorf("%v", found)
	}
}

// TestNothingIsToldOfKopfsExamples holds the same for the examples of kopf.
func TestNothingIsToldOfKopfsExamples(t *testing.T) {
	files, err := filepath.Glob("../samples/kopf/[0-9]*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("found %v (%v), want more", files, err)
	}
	for _, file := range files {
		op, err := config.Load([]string{file}, handlers.Standard())
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		nothingIsToldOf(t, op)
	}
}

// TestSamplesAreTheSameInGo holds that both routes make one operator.
func TestSamplesAreTheSameInGo(t *testing.T) {
	for _, inGo := range []*dsl.Operator{
		handlers.FooOperator(), handlers.FooBarOperator(), handlers.PodWatchOperator(), handlers.ItemWatchOperator(), handlers.DaemonOperator(),
		handlers.VolumeClaimOperator(), handlers.MemoOperator(), handlers.SubHandlersOperator(),
	} {
		t.Run(inGo.Name, func(t *testing.T) {
			inYAML, err := config.Load([]string{filepath.Join("..", "samples", inGo.Name, "operator.yaml")}, handlers.Standard())
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

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// TestDocumentsLoad holds that a reader can copy a configuration out of any page, and is told nothing of it.
func TestDocumentsLoad(t *testing.T) {
	found := 0
	inPages(t, yamlBlock, func(page, block string) {
		if !strings.Contains(block, "kind: Operator") {
			return
		}
		found++
		op, err := config.Parse(page, []byte(block), handlers.Standard())
		if err != nil {
			t.Errorf("%v", err)
			return
		}
		nothingIsToldOf(t, op)
	})
	if found == 0 {
		t.Error("no page shows a configuration")
	}
}

// inPages calls a function with what each match has in the pages of the documentation.
func inPages(t *testing.T, match *regexp.Regexp, see func(page, block string)) {
	t.Helper()
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range match.FindAllStringSubmatch(string(text), -1) {
			see(page, block[1])
		}
	}
}

func TestStandardHasNoFaults(t *testing.T) {
	r := handlers.Standard()
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"foo.Deployment", "foo.Status", "foobar.Ready", "podwatch.Print"} {
		if !slices.Contains(r.Functions(), want) {
			t.Errorf("function %s is not registered: %v", want, r.Functions())
		}
	}
}
