// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := lock(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = lock(path)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("is running there (process %d)", os.Getpid())) {
		t.Errorf("second lock: %v", err)
	}
	held.Close()
	again, err := lock(path)
	if err != nil {
		t.Fatalf("after the release: %v", err)
	}
	again.Close()
}

func TestRunRefusesAFolderInUse(t *testing.T) {
	dir := t.TempDir()
	held, err := lock(filepath.Join(dir, lockFile))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	err = Run(t.Context(), Settings{Dir: dir}, Programs{}, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "is running there") {
		t.Errorf("error is %v", err)
	}
}
