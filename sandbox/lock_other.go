// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// lock locks a directory for this process, by a file that a process leaves behind if it is killed.
func lock(dir string) (unlock func(), err error) {
	name := filepath.Join(dir, "lock")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w (if none does, remove %s)", ErrInUse, name)
	}
	if err != nil {
		return nil, err
	}
	_ = f.Close()
	return func() { _ = os.Remove(name) }, nil
}
