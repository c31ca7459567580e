// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

// Waiting returns how many objects keys of the engine's resources wait for, for tests of what is left
// over when nothing waits.
func Waiting(e *Engine) (n int) {
	for _, r := range e.resources {
		n += r.box.Awaited()
	}
	return n
}
