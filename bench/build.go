// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// build compiles the programs that are measured, all in the same way: static and stripped, as the released program is.
func (p plan) build(ctx context.Context) error {
	if err := compile(ctx, ".", p.dir+"/", "./minimal", "./operator", "./runtime"); err != nil {
		return err
	}
	// The released program is the main module's: with the versions that it is released with.
	if err := compile(ctx, "..", filepath.Join(p.dir, "handwerk"), "./cmd/operator"); err != nil || p.against == "" {
		return err
	}
	tree := filepath.Join(p.dir, "tree")
	if err := extract(ctx, p.against, tree); err != nil {
		return fmt.Errorf("reading commit %s: %w", p.against, err)
	}
	return compile(ctx, tree, filepath.Join(p.dir, "before"), "./cmd/operator")
}

func compile(ctx context.Context, dir, to string, packages ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-trimpath", "-ldflags", "-s -w", "-o", to}, packages...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building programs: %w", err)
	}
	return nil
}

// extract writes the files of a commit into a new folder.
func extract(ctx context.Context, commit, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	files := dir + ".tar"
	for _, args := range [][]string{
		{"git", "-C", "..", "archive", "--output", files, commit}, {"tar", "-x", "-f", files, "-C", dir},
	} {
		if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", args[0], err, out)
		}
	}
	return nil
}
