// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

// Function is Go code that a configuration calls by name.
type Function struct {
	// Name is what configurations write, by convention "<operator>.<Function>". Required.
	Name string
	// Func is the code. Required.
	Func Func
	// Doc says in a sentence what it does. Optional.
	Doc string
	// Params is a value of the struct that the parameters decode into (json tags), so that they
	// are checked when the configuration is loaded. Nil means that it takes none.
	Params any
	// Needs are what the code does with other resources, and with the handled object beyond what the
	// engine does, so that `operator rbac` can allow it: mostly MustParseNeed. Nil means that it is not
	// known; a function that needs nothing says so by an empty list.
	Needs []Need
}
