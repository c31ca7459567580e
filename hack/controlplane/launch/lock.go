// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// lock takes the folder's lock file or says who has it. The lock ends with the process that holds
// it, however that ends, so there are no stale ones.
func lock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening lock: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		owner, _ := os.ReadFile(path)
		file.Close()
		return nil, fmt.Errorf("locking %s: a control plane is running there (process %s)", path, strings.TrimSpace(string(owner)))
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	if err := errors.Join(file.Truncate(0), writeAt(file, fmt.Sprintln(os.Getpid()))); err != nil {
		file.Close()
		return nil, fmt.Errorf("writing lock: %w", err)
	}
	return file, nil
}

func writeAt(file *os.File, text string) error {
	_, err := file.WriteAt([]byte(text), 0)
	return err
}
