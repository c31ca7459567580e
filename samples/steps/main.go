// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command steps runs operator.yaml with the stock actions and the function of package attempts.
package main

import (
	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/samples/errors/attempts"
)

func main() {
	registry := handlers.Standard()
	attempts.Functions(registry)
	cmd.Main(registry)
}
