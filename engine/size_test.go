// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The most lines of a package of the engine, without its tests: one that outgrows this has an idea in it that is a
// package of its own. Package engine joins them all.
const (
	maxPackage = 1500
	maxEngine  = 2500
)

// TestPackagesAreSmall holds that whoever reads a package of the engine can have all of it in mind. Test kits may be
// larger.
func TestPackagesAreSmall(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if name != "engine" && !strings.HasPrefix(name, "engine/") || strings.HasPrefix(name, "engine/enginetest") || strings.HasPrefix(name, "engine/e2e") {
			continue
		}
		most := maxPackage
		if name == "engine" {
			most = maxEngine
		}
		lines := 0
		for _, file := range p.GoFiles {
			data, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			lines += bytes.Count(data, []byte("\n"))
		}
		if lines > most {
			t.Errorf("package %s has %d lines, want %d at most: what is an idea by itself becomes a package", name, lines, most)
		}
	}
}
