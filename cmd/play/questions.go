// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"context"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// questions answers questions about the operator that runs now.
type questions struct{ engine atomic.Pointer[engine.Engine] }

// Ask implements [ops.Debug].
func (q *questions) Ask(ctx context.Context, question string, values url.Values) (any, error) {
	return q.engine.Load().Ask(ctx, question, values)
}

// answer serves questions about an operator, as operator run does, and says where. If that cannot be, play goes on without. End ends it.
func (p *player) answer(ctx context.Context, operator string) (end func()) {
	server := ops.NewServer(ops.Settings{
		Debug: ops.DebugSettings{Address: ops.DebugAddress, Elsewhere: true, Debug: &p.questions, Operator: operator, Process: identity},
		Log:   logr.Discard(),
	})
	if err := server.Listen(ctx); err != nil {
		p.lines.fault("questions get no answer", err)
		return func() {}
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve() }()
	p.lines.asked(server.DebugAddress())
	return func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = server.Shutdown(ending) // who asks now gets no answer
		if err := <-served; err != nil {
			p.lines.fault("questions got no answer", err)
		}
	}
}
