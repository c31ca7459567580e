// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command defaults runs operator.yaml with the stock actions and the functions of package caches.
package main

import (
	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/samples/defaults/caches"
)

func main() {
	registry := handlers.Standard()
	caches.Functions(registry)
	cmd.Main(registry)
}
