// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command operator runs any operator that is written in YAML with the stock handlers. To write
// handlers in Go, copy this file and register them:
//
//	func main() {
//		registry := handlers.Standard()
//		registry.Func("foo.Announce", announce)
//		cmd.Main(registry)
//	}
package main

import (
	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/samples"
)

// The linker sets these for a release: -X main.builtBy=… -X main.image=….
var builtBy, image string

func main() {
	cmd.Program{Registry: handlers.Standard(), Samples: samples.Files(), BuiltBy: builtBy, Image: image}.Main()
}
