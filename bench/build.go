// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// build compiles the programs that are measured.
func (p plan) build(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", p.dir+"/", "./minimal", "./operator", "./cache")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building what is measured: %w", err)
	}
	return nil
}
