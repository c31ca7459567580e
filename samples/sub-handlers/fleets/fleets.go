// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package fleets has the function of samples/sub-handlers.
package fleets

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
)

// fleet is the spec of a Fleet.
type fleet struct {
	// Regions are the desired regions; those in Closed do not accept the fleet yet.
	Regions []string `json:"regions"`
	Closed  []string `json:"closed"`
}

// Deploy declares a sub-handler for each region of a Fleet. A failed one is retried alone; those that have
// succeeded do not run again.
func Deploy(_ context.Context, r *dsl.Request) error {
	var spec fleet
	if err := r.Into("spec", &spec); err != nil {
		return dsl.Permanent(err)
	}
	for _, region := range spec.Regions {
		r.Handle(region, func(_ context.Context, r *dsl.Request) error {
			r.Patch.SetStatus("attempts."+region, r.Attempt)
			if slices.Contains(spec.Closed, region) {
				return fmt.Errorf("%s is closed", region)
			}
			r.Log.Info("the fleet is in " + region) // logged by handler deploy/<region>
			return nil
		}, dsl.Retries(2), dsl.WithBackoff(time.Second, time.Minute))
	}
	return nil
}

// Functions registers the function.
func Functions(r *actions.Registry) {
	r.Function(dsl.Function{
		Name: "fleets.Deploy", Func: Deploy, Doc: "has a sub-handler for each region of a Fleet",
		Needs: []dsl.Need{dsl.MustParseNeed("patch", "self/status")},
	})
}

// Operator is operator.yaml written in Go.
func Operator() *dsl.Operator {
	op := dsl.New("sub-handlers")
	op.Resource("fleets.v1alpha1.samples.handwerk.dev", func(fleet *dsl.Resource) {
		fleet.On([]dsl.Cause{dsl.Create, dsl.Update}, "deploy", Deploy, dsl.Needs("patch", "self/status"))
	})
	return op
}
