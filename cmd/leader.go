// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
)

// ownNamespace returns the namespace of the pod; empty outside of a pod.
func (p *program) ownNamespace() string {
	if found := lookup(p.Env, "POD_NAMESPACE"); found != "" {
		return found
	}
	text, _ := os.ReadFile(p.podNamespace) // without the file it is not a pod
	return strings.TrimSpace(string(text))
}

// completeLeader adds the pod's data that the leader election needs, or says what is missing.
func (p *program) completeLeader(op *dsl.Operator) error {
	leader := &op.Settings.LeaderElection
	if leader.Mode == "" || leader.Mode == dsl.LeaderNone {
		return nil
	}
	if leader.Mode == dsl.LeaderLife && lookup(p.Env, "POD_NAME") == "" {
		return errors.New("electing the leader for life: POD_NAME is not set (take it from the pod's metadata.name)")
	}
	if leader.Namespace = cmp.Or(leader.Namespace, p.ownNamespace()); leader.Namespace == "" {
		return fmt.Errorf("electing the leader by %s: outside a pod, --leader-elect-namespace is required", leader.Mode)
	}
	return nil
}
