// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl_test

import (
	"context"
	"fmt"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// An operator that keeps a ConfigMap for each Greeting and says goodbye when one is deleted.
func Example() {
	op := dsl.New("greeter")
	op.Resource("greetings.v1.example.com", func(greeting *dsl.Resource) {
		greeting.Owns("configmaps.v1")
		greeting.OnReconcile("card", func(ctx context.Context, r *dsl.Request) error {
			name, _ := dsl.MustParsePath("spec.name").In(r.Object.Object)
			_, err := r.Children.Apply(ctx, map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap",
				"metadata": map[string]any{"name": r.Object.GetName()},
				"data":     map[string]any{"text": fmt.Sprintf("Hello, %v!", name)},
			})
			return err
		}, dsl.Timeout(30*time.Second))
		greeting.OnDelete("goodbye", func(_ context.Context, r *dsl.Request) error {
			r.Log.Info("goodbye")
			return nil
		})
	})

	for r, h := range op.Handlers() {
		fmt.Println(r.Name, h.ID, h.Causes)
	}
	fmt.Println(op.Validate())
	// Output:
	// greetings.v1.example.com card [create update resume child related index resync]
	// greetings.v1.example.com goodbye [delete]
	// <nil>
}
