// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThePageNamesTestsThatExist holds that docs/security.md proves what it says: each test that it
// names is there.
func TestThePageNamesTestsThatExist(t *testing.T) {
	page, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	there := testsOf(t, "..")
	named := regexp.MustCompile(`\bTest[A-Z]\w*`).FindAllString(string(page), -1)
	if len(named) < 20 {
		t.Errorf("the page names %d tests", len(named))
	}
	for _, name := range named {
		if !there[name] {
			t.Errorf("docs/security.md names %s, which is no test", name)
		}
	}
}

// testsOf finds the tests below a folder.
func testsOf(t *testing.T, root string) map[string]bool {
	t.Helper()
	declared, found := regexp.MustCompile(`(?m)^func (Test\w+)\(`), map[string]bool{}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range declared.FindAllStringSubmatch(string(text), -1) {
			found[match[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
