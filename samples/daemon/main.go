// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command daemon runs operator.yaml with the stock actions and the function of package probe.
package main

import (
	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/samples/daemon/probe"
)

func main() {
	registry := handlers.Standard()
	probe.Functions(registry)
	cmd.Main(registry)
}
