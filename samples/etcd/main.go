// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command etcd runs operator.yaml with the stock actions and the functions of package members.
package main

import (
	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/samples/etcd/members"
)

func main() {
	registry := handlers.Standard()
	members.Functions(registry)
	cmd.Main(registry)
}
