// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kopf

import (
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/sandbox/cases"
)

// TestCasesOfExamplesInGo runs the cases of the examples that are functions; operator test would have no operator for them.
func TestCasesOfExamplesInGo(t *testing.T) {
	for name, declare := range map[string]func(*dsl.Operator){
		"exceptions": Exceptions, "hooks": hooks, "daemons": Daemons, "all-at-once": AllAtOnce,
	} {
		t.Run(name, func(t *testing.T) { cases.Run(t, "testdata/"+name+".yaml", handlers.Standard(), declare) })
	}
}
