// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command sub-handlers runs operator.yaml with the stock actions and the function of package fleets.
package main

import (
	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/samples/sub-handlers/fleets"
)

func main() {
	registry := handlers.Standard()
	fleets.Functions(registry)
	cmd.Main(registry)
}
