// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// TestANamesakeIsSeen holds that the right to list Leases by the lock's name alone is enough to see that an operator of the same
// name leads by a Lease in another namespace.
func TestANamesakeIsSeen(t *testing.T) {
	t.Parallel()
	one, two := plane.Namespace(t), plane.Namespace(t)
	first, second := contenders(t, one, byLease, 1)[0], contenders(t, two, byLease, 1)[0]
	second.user.AllowIn(t, one, fooRules()...)
	second.launch.Args = append(second.launch.Args, "-n", one)
	byName := cluster.Rule("coordination.k8s.io", "leases", "list")
	byName.ResourceNames = []string{lock}
	second.user.Allow(t, byName)
	stage := stageIn(one)
	first.start(t)
	awaitLeader(t, one, first)
	stage.settled(t, "a", 1)

	mark := plane.Mark(t)
	second.start(t)
	second.Await(t, "the scopes overlap; this process does not lead")
	if lines := second.With(`"other":"` + one + "/" + lock + `"`); len(lines) != 1 {
		t.Errorf("it says %q", lines)
	}
	second.awaitStandby(t)
	stage.foos.Patch(t, "a", `{"spec":{"replicas":2}}`)
	stage.follows(t, "a", 2)
	mustNotHaveWritten(t, mark, second)

	first.Stop(t)
	awaitLeader(t, two, second)
	stage.foos.Patch(t, "a", `{"spec":{"replicas":1}}`)
	stage.follows(t, "a", 1)
	mustLogNoError(t, second.Lines, lockTimeout)
}
