// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
	"github.com/handwerk-dev/handwerk/sandbox/server/local"
	"github.com/handwerk-dev/handwerk/sandbox/workloads"
)

// inMemory starts a server in memory on a port, with workloads that come alive, and returns the config of a client with
// all rights. The server ends with the test.
func inMemory(t *testing.T) *rest.Config {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	memory := server.New(complete.Settings())
	listener, err := local.Listen(ctx, memory, "127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{
		Host: listener.URL, BearerToken: memory.Token(server.Administrator()), QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: listener.Certificate},
	}
	done := make(chan error, 1)
	go func() { done <- workloads.Run(ctx, config, workloads.Settings{}) }()
	t.Cleanup(func() {
		stop()
		listener.Wait()
		if err := <-done; err != nil {
			t.Errorf("running stages: %v", err)
		}
	})
	define(t, config)
	return config
}

// define creates the CRD.
func define(t *testing.T, config *rest.Config) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(definition)))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := cluster.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	for _, o := range objects {
		if _, err := dynamic.NewForConfigOrDie(config).Resource(crds).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
