// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package config reads the YAML form of an operator.
//
// The form is read strictly and whole: a field that is not known, a key that is there twice, a
// value of the wrong kind, an expression that does not compile or options that exclude each other
// are faults, and all of them are reported, each with its file, line and column.
//
// What an action takes is said by the action: this package knows none by name. An action's form
// is whatever [actions.Action].Config returns a pointer to: text, a number, a list, a map, any (plain
// values as JSON has them), a type that unmarshals itself from text, or a struct of these. Struct
// fields have a yaml tag with their name, a doc tag for people, and where it applies required,
// min (the least number) and default (shown, not set). Nothing else about them is optional: text
// must not be empty and durations are more than zero. A type must not contain itself.
package config
