// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

func TestPlayFindsTheConfigurationThatIsNearest(t *testing.T) {
	tests := map[string]struct {
		here, there string // what a file has in the current folder, and in that of the main package
		golang      bool
		paths       []string
		beside      string
	}{
		"the current folder has it":       {here: "kind: Operator", there: "kind: Operator", paths: []string{"."}, beside: "."},
		"the main package has it":         {here: "kind: Foo", there: "kind: Operator", paths: []string{"src"}, beside: "src"},
		"it is in Go alone":               {golang: true, beside: "src"},
		"there is none, which is a fault": {paths: []string{"."}, beside: "."},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			p := &program{source: "src"}
			if test.golang {
				p.extra = []func(*dsl.Operator){addBars}
			}
			if err := os.Mkdir("src", 0o700); err != nil {
				t.Fatal(err)
			}
			for dir, text := range map[string]string{".": test.here, "src": test.there} {
				if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			paths, beside := p.nearest()
			if diff := cmp.Diff(test.paths, paths); diff != "" || beside != test.beside {
				t.Errorf("beside is %s, paths (-want +got):\n%s", beside, diff)
			}
		})
	}
}
