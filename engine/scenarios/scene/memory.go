// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"runtime/debug"
	"strings"
)

// WithLittleMemory launches an operator whose reconciles over objects of [Large] begin one at a time.
func (s *Stage) WithLittleMemory(launch func()) {
	s.T.Helper()
	limit := debug.SetMemoryLimit(8 << 20)
	defer debug.SetMemoryLimit(limit)
	launch()
	s.Settle()
}

// Large is a Foo whose reconcile takes all that reconciles may have in an operator with little memory.
func Large(name string) string {
	return `{apiVersion: example.com/v1, kind: Foo, metadata: {name: ` + name + `, namespace: default}, spec: {text: ` + strings.Repeat("x", 64<<10) + `}}`
}
