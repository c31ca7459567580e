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
	run := func(dir string, args ...string) error {
		cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-trimpath", "-ldflags", "-s -w"}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("building what is measured: %w", err)
		}
		return nil
	}
	if err := run(".", "-o", p.dir+"/", "./minimal", "./operator", "./runtime"); err != nil {
		return err
	}
	// The released program is the main module's: with the versions that it is released with.
	return run("..", "-o", filepath.Join(p.dir, "handwerk"), "./cmd/operator")
}
