// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
)

// TestWebhooksThatNoAPIServerReachesAreAFault holds that a person learns of it at the start, and not from refused requests.
func TestWebhooksThatNoAPIServerReachesAreAFault(t *testing.T) {
	fn := func(context.Context, *dsl.AdmissionRequest) error { return nil }
	const fault = "serving webhooks: foos/size cannot be reached from the API server, as this is no Pod: add --webhook-address 127.0.0.1:9443 for an API server on this machine, or --webhook-url"
	for _, tc := range []struct {
		name    string
		env     []string
		set     engine.Webhooks
		declare func(*dsl.Resource)
		want    string
	}{
		{"on a laptop", nil, engine.Webhooks{}, func(r *dsl.Resource) { r.Validate("size", fn) }, fault},
		{"on a laptop, with an address", nil, engine.Webhooks{Address: "127.0.0.1:9443"}, func(r *dsl.Resource) { r.Validate("size", fn) }, ""},
		{"in a Pod", []string{"KUBERNETES_SERVICE_HOST=10.0.0.1"}, engine.Webhooks{}, func(r *dsl.Resource) { r.Validate("size", fn) }, ""},
		{"without webhooks", nil, engine.Webhooks{}, func(r *dsl.Resource) {
			r.OnCreate("a", func(context.Context, *dsl.Request) error { return nil })
		}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			op := dsl.New("demo")
			op.Resource("foos.v1.example.com", tc.declare)
			p := &program{Streams: Streams{Env: tc.env}}
			got := ""
			if err := p.reached(&runFlags{webhooks: tc.set}, op); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("the error is %q, want %q", got, tc.want)
			}
		})
	}
}
