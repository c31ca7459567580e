// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"net/http"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// leads is a process that leads.
type leads struct{}

func (leads) Sure(context.Context) bool { return true }

func (leads) Conflict(context.Context) {}

// TestTransportIsClientGos holds that what is in the way of requests leaves client-go's transport in place,
// which pings an HTTP/2 connection that is silent for 30 s and closes one that does not answer.
func TestTransportIsClientGos(t *testing.T) {
	config := &rest.Config{Host: "https://cluster", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	bare, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	fence, err := transport.NewFence(config, leads{})
	if err != nil {
		t.Fatal(err)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return fence.Transport(ops.NewMetrics().Transport(next))
	})
	top, err := rest.TransportFor(transport.WithDeadline(config))
	if err != nil {
		t.Fatal(err)
	}
	for {
		wrapper, ok := top.(interface{ WrappedRoundTripper() http.RoundTripper })
		if !ok {
			break
		}
		top = wrapper.WrappedRoundTripper()
	}
	unwrapped, ok := bare.(interface{ WrappedRoundTripper() http.RoundTripper })
	if ok {
		bare = unwrapped.WrappedRoundTripper()
	}
	if plain, ok := top.(*http.Transport); !ok || top != bare || plain.TLSNextProto["h2"] == nil {
		t.Errorf("underneath is %T, want client-go's own with HTTP/2, %T", top, bare)
	}
}
