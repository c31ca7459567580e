// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"path/filepath"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
)

// Run runs the cases of a file, or of all files in a directory and below, each as a subtest. The registry and the
// functions beside are those of the program, as in cmd.Main.
//
//	func TestCases(t *testing.T) { cases.Run(t, "testdata/foo_test.yaml", handlers.Standard()) }
func Run(t *testing.T, path string, registry *actions.Registry, beside ...func(*dsl.Operator)) {
	t.Helper()
	names, err := Find([]string{path})
	if err != nil || len(names) == 0 {
		t.Fatalf("finding cases in %s: found %d files (%v)", path, len(names), err)
	}
	suite := NewSuite(registry, beside...)
	for _, name := range names {
		f, err := Read(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if lacks := suite.Lacks(f); lacks != "" {
			t.Errorf("%s: %s", name, lacks)
			continue
		}
		for _, c := range f.Cases {
			t.Run(filepath.Base(name)+"/"+c.Name, func(t *testing.T) {
				for _, failure := range suite.Test(t, c) {
					t.Error(failure)
				}
			})
		}
	}
}
