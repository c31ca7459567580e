// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"testing"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
)

// ready starts a sandbox, and returns when a client with its kubeconfig has an answer by TLS.
func ready(tb testing.TB) {
	tb.Helper()
	ctx, stop := context.WithCancel(tb.Context())
	defer stop()
	s, err := Start(ctx, Options{})
	if err != nil {
		tb.Fatal(err)
	}
	defer s.Stop()
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	if err != nil {
		tb.Fatal(err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := client.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkReady measures how soon a sandbox answers; 200 ms is the goal.
func BenchmarkReady(b *testing.B) {
	for b.Loop() {
		ready(b)
	}
}
