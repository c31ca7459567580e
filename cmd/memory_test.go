// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

func TestTuneMemory(t *testing.T) {
	for name, test := range map[string]struct {
		gogc string
		want int
	}{
		"without GOGC the heap is collected earlier": {"", gcPercent},
		"GOGC of the environment stays":              {"80", 80},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOGC", test.gogc)
			t.Setenv("GOMEMLIMIT", "off")
			before := debug.SetGCPercent(80)
			defer debug.SetGCPercent(before)
			tuneMemory()
			if got := debug.SetGCPercent(before); got != test.want {
				t.Errorf("the collector has %d percent, want %d", got, test.want)
			}
		})
	}
}

func TestMemoryLimit(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		want    int64
	}{
		"a container with a limit":    {"268435456\n", 256 << 20},
		"a container without a limit": {"max\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "memory.max")
			if err := os.WriteFile(file, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, ok := memoryLimit(file); got != test.want || ok != (test.want > 0) {
				t.Errorf("the limit is %d (%t), want %d", got, ok, test.want)
			}
		})
	}
	if _, ok := memoryLimit(filepath.Join(t.TempDir(), "missing")); ok {
		t.Error("a system without control groups has a limit")
	}
}
