// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/engine/cluster/kube"
)

// TestNoProgramLinksTheClientset holds that no code besides tests makes a clientset of client-go, which would link the clients of all
// API groups again, or the typed client of the core group.
func TestNoProgramLinksTheClientset(t *testing.T) {
	refused := map[string]bool{
		`"k8s.io/client-go/kubernetes"`:                  true,
		`"k8s.io/client-go/kubernetes/typed/core/v1"`:    true,
		`"k8s.io/client-go/applyconfigurations/core/v1"`: true,
	}
	files := 0
	for _, area := range []string{"cmd", "dsl", "engine", "handlers", "samples", "sandbox"} {
		err := filepath.WalkDir(filepath.Join("../../..", area), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && entry.Name() == "e2e":
				return fs.SkipDir
			case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			files++
			for _, one := range file.Imports {
				if refused[one.Path.Value] {
					t.Errorf("%s imports %s: use this package", path, one.Path.Value)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 100 {
		t.Errorf("only %d files were looked at", files)
	}
}

// TestARateLimitNeedsABurst holds that a limit which would let no request through is refused.
func TestARateLimitNeedsABurst(t *testing.T) {
	for _, test := range []struct {
		qps   float32
		burst int
		fails bool
	}{{-1, 0, false}, {0, 0, false}, {5, 10, false}, {5, 0, true}} {
		if _, err := kube.New(&rest.Config{Host: "http://localhost", QPS: test.qps, Burst: test.burst}); (err != nil) != test.fails {
			t.Errorf("with %v requests a second and a burst of %d, the error is %v", test.qps, test.burst, err)
		}
	}
}
