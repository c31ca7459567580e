// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command activities runs operator.yaml with a probe, which is Go: /readyz fails while the door is closed. Try it by
//
//	go run ./samples/activities run --config samples/activities/operator.yaml
package main

import (
	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/handlers"
)

func main() { cmd.Main(handlers.Standard(), declare) }

// declare adds the probe to what the configuration says.
func declare(op *dsl.Operator) { op.OnReady("door", handlers.DoorReady) }
