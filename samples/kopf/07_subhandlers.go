// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kopf

import (
	"context"

	"github.com/handwerk-dev/handwerk/dsl"
)

// SubHandlers is 07-subhandlers: one for each item.
func SubHandlers(op *dsl.Operator) {
	op.Name = "kopf-07-subhandlers"
	op.Resource(Examples, func(kex *dsl.Resource) {
		kex.OnCreate("create_fn", func(_ context.Context, r *dsl.Request) error {
			var items []string
			err := r.Into("spec.items", &items)
			for _, item := range items {
				r.Handle(item, func(_ context.Context, r *dsl.Request) error {
					r.Log.Info("Handling creation for " + item)
					return nil
				})
			}
			return err
		})
	})
}
