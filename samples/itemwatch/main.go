// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command itemwatch runs operator.yaml with the stock actions and the function of package podwatch.
package main

import (
	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/samples/podwatch/podwatch"
)

func main() {
	registry := handlers.Standard()
	podwatch.Functions(registry)
	cmd.Main(registry)
}
