// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cluster

import "syscall"

// attributes cannot do more elsewhere: a test binary that is killed leaves its children.
func attributes(syscall.Signal) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
