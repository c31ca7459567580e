// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"io"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
)

// mostRisks is the number of lines about risks at the end of operator bundle.
const mostRisks = 5

// writeRisks says which dangerous things an operator's account can do. It writes at most a number of lines; 0 means all.
func writeRisks(out io.Writer, op *dsl.Operator, risks []rbac.Risk, most int) {
	if len(risks) == 0 {
		fmt.Fprintf(out, "the account of operator %s can do nothing that Kubernetes calls risky\n", op.Name)
		return
	}
	fmt.Fprintf(out, "the account of operator %s can\n", op.Name)
	for i, risk := range risks {
		if most > 0 && i == most {
			fmt.Fprintf(out, "  and %d more (operator rbac --summary)\n", len(risks)-most)
			return
		}
		fmt.Fprintf(out, "  %s\n", risk)
	}
}
