// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"context"
	"net/http"
	"time"

	"github.com/handwerk-dev/handwerk/sandbox"
	"github.com/handwerk-dev/handwerk/sandbox/workloads"
)

// readyAfter is how long a Pod takes to be ready: long enough that an operator sees one that is not.
const readyAfter = 300 * time.Millisecond

// serve starts a cluster in memory whose writes have lines.
func (s Settings) serve(ctx context.Context, name string, lines *lines) (*sandbox.Sandbox, error) {
	out, err := sandbox.Start(context.WithoutCancel(ctx), sandbox.Options{ // the operator writes until it has stopped
		Context: "play", Keep: s.Keep, Plan: workloads.NewPlan(workloads.Rule{Delay: readyAfter}), Log: lines.logger(),
		OwnWrites: lines.own,
		Wrap: func(s *sandbox.Sandbox, next http.Handler) http.Handler {
			return &outside{next: next, server: s.Config().Transport, lines: lines}
		},
		WrapWorkloads: func(next http.RoundTripper) http.RoundTripper {
			return &observer{next: next, client: "workloads", lines: lines, says: lines.staged}
		},
	})
	if err != nil {
		return nil, err
	}
	if s.Last != nil {
		s.Last(out.Leave)
	}
	lines.banner(name, out.Kubeconfig(), s.Keep, out.Kept())
	return out, nil
}
