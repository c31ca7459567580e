// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

//go:build profile

package main

import (
	"fmt"
	"os"
	"runtime/pprof"
)

// profiled writes profiles until what it returns is called.
func profiled(prefix string) func() {
	if prefix == "" {
		return func() {}
	}
	cpu, err := os.Create(prefix + ".cpu.pprof")
	if err == nil {
		err = pprof.StartCPUProfile(cpu)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "minimal:", err)
		os.Exit(1)
	}
	return func() {
		pprof.StopCPUProfile()
		cpu.Close()
	}
}
