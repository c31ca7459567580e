// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command foobar runs operator.yaml with the stock actions and the function of package foobar.
package main

import (
	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/samples/foobar/foobar"
)

func main() {
	registry := handlers.Standard()
	foobar.Functions(registry)
	cmd.Main(registry)
}
