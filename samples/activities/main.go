// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command activities runs operator.yaml with the stock actions and the functions of package door.
package main

import (
	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/samples/activities/door"
)

func main() {
	registry := handlers.Standard()
	door.Functions(registry)
	cmd.Main(registry)
}
