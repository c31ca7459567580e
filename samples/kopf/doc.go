// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package kopf has kopf's examples as they are written here: those in YAML are files of their own, those that need Go are
// functions. A main package runs one of these:
//
//	func main() { cmd.Main(handlers.Standard(), kopf.Exceptions) }
package kopf

// Examples is what all examples are about.
const Examples = "kopfexamples.v1.kopf.dev"
