// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package ops

// freeFilePages does nothing on this system.
func freeFilePages() {}
