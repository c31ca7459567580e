// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
)

// mostRisks is the number of lines about risks at the end of operator bundle.
const mostRisks = 5

// checkSummary reports flags that --summary would ignore.
func (f *rbacFlags) checkSummary() error {
	if f.summary && (f.check || f.run.set.Changed("output")) {
		return errors.New("--summary prints a text for people; it goes without --check and --output")
	}
	return nil
}

// writeSummary writes all risks of an operator, and its handlers without declared rights.
func writeSummary(out io.Writer, op *dsl.Operator, rules []rbac.Rule) {
	writeRisks(out, op, rbac.Risks(rules), 0)
	for _, handler := range rbac.Undeclared(op) {
		fmt.Fprintln(out, undeclared(handler))
	}
}

// unusual returns the risks that not every operator has.
func unusual(risks []rbac.Risk) []rbac.Risk {
	return slices.DeleteFunc(risks, func(r rbac.Risk) bool { return r.Usual })
}

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
