// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

const (
	// rulesWithin is how long rules about requests may take to be in force, and rulesAgain the time between two looks.
	rulesWithin = 10 * time.Second
	rulesAgain  = 20 * time.Millisecond
)

// examples creates examples when the rules of the operator about requests are in force: otherwise one that breaks a rule would be stored.
func (p *player) examples(ctx context.Context, t *turn, list []thing) {
	if e := p.questions.engine.Load(); t != nil && len(list) > 0 {
		p.awaitRules(ctx, t, e)
	}
	p.create(ctx, list)
}

// awaitRules waits until the rules of an operator are in force, its run ends, or that takes too long.
func (p *player) awaitRules(ctx context.Context, t *turn, e *engine.Engine) {
	var open *ops.Check
	_ = wait.PollUntilContextTimeout(ctx, rulesAgain, rulesWithin, true, func(context.Context) (bool, error) {
		open = openCheck(e.Ready())
		select {
		case <-t.ended():
			open = nil
		default:
		}
		return open == nil, nil
	})
	if open != nil && ctx.Err() == nil {
		p.lines.say("the rules about requests may not hold for the examples: %s", open)
	}
}

// openCheck returns the check that says why rules about requests are not in force; nil if they are, or if there is none.
func openCheck(all []ops.Check) *ops.Check {
	if !slices.ContainsFunc(all, func(c ops.Check) bool { return c.Name == "admission" }) {
		return nil
	}
	i := slices.IndexFunc(all, func(c ops.Check) bool {
		return c.State != ops.Pass && slices.Contains([]string{"started", "admission", "webhooks"}, c.Name)
	})
	if i < 0 {
		return nil
	}
	return &all[i]
}
