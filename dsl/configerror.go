// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

// ConfigError is a fault at a place within an action's configuration.
type ConfigError struct {
	// Path leads to the faulty value from the handler, as in {"with", "channel"}. An index of a
	// list is its number.
	Path []string
	// Line and Column, both from 1, are the place within the value, when that is a text; zero means
	// its beginning. Columns count characters.
	Line, Column int
	// Message says what is wrong.
	Message string
}

// Error returns the message.
func (e *ConfigError) Error() string { return e.Message }
