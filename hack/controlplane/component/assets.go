// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

//go:build assets

package component

// All returns nothing: this build has no components of its own.
func All() map[string]func() { return nil }
