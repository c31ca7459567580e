// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package chart

import "syscall"

// attributes end nothing: only Linux has that.
func attributes() *syscall.SysProcAttr { return nil }
