// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package launch

import "syscall"

// childAttributes put a component into a process group of its own, so that an interrupt from the
// terminal reaches the launcher alone and the order of the stop is kept.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
