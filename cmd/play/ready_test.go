// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"context"
	"testing"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
)

// ready starts a server as a play does, and returns when a client with its kubeconfig has an answer by TLS.
func ready(tb testing.TB) {
	tb.Helper()
	ctx, stop := context.WithCancel(tb.Context())
	defer stop()
	server, err := Settings{}.serve(ctx, "ready", newLines(&transcript{changed: make(chan struct{})}, false))
	if err != nil {
		tb.Fatal(err)
	}
	defer server.close()
	config, err := clientcmd.BuildConfigFromFlags("", server.kubeconfig)
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

// BenchmarkReady measures how soon a play answers; 200 ms is the goal.
func BenchmarkReady(b *testing.B) {
	for b.Loop() {
		ready(b)
	}
}
