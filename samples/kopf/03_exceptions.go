// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kopf

import (
	"context"
	"errors"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Exceptions is 03-exceptions: handlers that fail at once, after some attempts, or not in the end.
func Exceptions(op *dsl.Operator) {
	op.Name = "kopf-03-exceptions"
	op.Resource(Examples, func(kex *dsl.Resource) {
		kex.OnCreate("instant_failure_with_only_a_message", func(context.Context, *dsl.Request) error {
			return dsl.Permanent(errors.New("fails once and for all"))
		})
		kex.OnCreate("eventual_success_with_a_few_messages", func(_ context.Context, r *dsl.Request) error {
			if r.Attempt <= 3 {
				return dsl.Temporary(errors.New("this was to be expected"), time.Second)
			}
			return nil
		})
		kex.OnCreate("eventual_failure", mend, dsl.Retries(2), dsl.WithBackoff(time.Second, time.Second))
		kex.OnCreate("instant_failure", mend, dsl.Errors(dsl.ErrorsFail))
	})
}

func mend(context.Context, *dsl.Request) error {
	return errors.New("this could be mended")
}
