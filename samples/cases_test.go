// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package samples_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/samples/functions"
	"github.com/handwerk-dev/handwerk/sandbox/cases"
)

// TestCases runs the cases of samples that have a program of their own. The program must have all functions that the cases call.
// All other samples must have cases, too; make test runs them by operator test.
func TestCases(t *testing.T) {
	folders, err := filepath.Glob("*/operator.yaml")
	if err != nil || len(folders) == 0 {
		t.Fatalf("samples: %v, %v", folders, err)
	}
	for _, file := range append(folders, "kopf/crd.yaml") {
		folder := filepath.Dir(file)
		if found, err := filepath.Glob(folder + "/*_test.yaml"); err != nil || len(found) == 0 {
			t.Errorf("%s has no cases (%v)", folder, err)
		}
		if _, err := os.Stat(folder + "/main.go"); err == nil {
			t.Run(folder, func(t *testing.T) { cases.Run(t, folder, programOf(t, folder)) })
		}
	}
}

// programOf returns the registry of a sample's program, which is operator where the sample has no main.go.
func programOf(t *testing.T, folder string) *actions.Registry {
	t.Helper()
	registry := handlers.Standard()
	main, err := os.ReadFile(filepath.Join(folder, "main.go"))
	if err != nil {
		return registry
	}
	found := registered.FindSubmatch(main)
	if found == nil {
		t.Fatalf("the program of %s has no functions", folder)
	}
	functions.All()[string(found[1])](registry)
	return registry
}
