// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"os"
	"path/filepath"
	"testing"
)

// TestASocketHasItsModeFromTheBeginning: others never see it with another one, also where the process's umask lets them. While it has
// none of its own, it is in a folder that they may not enter.
func TestASocketHasItsModeFromTheBeginning(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	entered, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for seen := false; ; {
			select {
			case <-entered:
				return
			default:
			}
			all, _ := os.ReadDir(dir)
			for _, one := range all {
				info, err := one.Info()
				if err != nil {
					continue // it is moved, or gone
				}
				if mode := info.Mode().Perm(); info.IsDir() && mode != 0o700 || !info.IsDir() && mode != 0o600 {
					if !seen {
						t.Errorf("%s has mode %o", one.Name(), mode)
					}
					seen = true
				}
			}
		}
	}()
	for range 200 {
		l, err := listenSocket(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	close(entered)
	<-done
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("there are %v left, %v", left, err)
	}
}
