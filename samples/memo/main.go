// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command memo runs operator.yaml with the stock actions and the function of package guests.
package main

import (
	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/samples/memo/guests"
)

func main() {
	registry := handlers.Standard()
	guests.Functions(registry)
	cmd.Main(registry)
}
