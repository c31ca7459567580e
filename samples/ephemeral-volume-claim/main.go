// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command ephemeral-volume-claim runs operator.yaml with the stock actions and the function of package volumes.
package main

import (
	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/samples/ephemeral-volume-claim/volumes"
)

func main() {
	registry := handlers.Standard()
	volumes.Functions(registry)
	cmd.Main(registry)
}
