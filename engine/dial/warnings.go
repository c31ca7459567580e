// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dial

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
)

// warnings logs the warnings of answers as client-go does, but for those that may quote a Secret.
type warnings struct{ rest.WarningLogger }

// HandleWarningHeaderWithContext implements [rest.WarningHandlerWithContext].
func (w warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, agent, message string) {
	if !dsl.Discreet(ctx) {
		w.WarningLogger.HandleWarningHeaderWithContext(ctx, code, agent, message)
	}
}
