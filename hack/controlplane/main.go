// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command controlplane is a whole Kubernetes control plane in one program: started by a component's
// name it is that component, otherwise it is the launcher that starts them all.
package main

import (
	"os"

	"github.com/handwerk-dev/handwerk/hack/controlplane/component"
	"github.com/handwerk-dev/handwerk/hack/controlplane/launch"
)

func main() {
	builtin := component.All()
	if len(os.Args) > 1 {
		if run, found := builtin[os.Args[1]]; found {
			launch.EndWithParent()
			os.Args = os.Args[1:]
			run()
			return
		}
	}
	names := make([]string, 0, len(builtin))
	for name := range builtin {
		names = append(names, name)
	}
	os.Exit(launch.Main(os.Args[1:], names))
}
