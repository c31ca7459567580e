// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package likeness

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
	"github.com/handwerk-dev/handwerk/sandbox/workloads"
)

// endpoint is an API server as a client reaches it.
type endpoint struct {
	host   string
	client *http.Client
	// served waits until the resource of a CRD is served.
	served func(t *testing.T, crd *unstructured.Unstructured)
}

// realServer returns the real one.
func realServer(t *testing.T) endpoint {
	t.Helper()
	config := plane.Config()
	config.DisableCompression = true
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	return endpoint{strings.TrimSuffix(config.Host, "/"), client, func(t *testing.T, crd *unstructured.Unstructured) {
		t.Helper()
		plane.AwaitServed(t, crd)
	}}
}

// inMemory returns a new one in memory, where workloads come alive as on the real one. It ends with the test.
func inMemory(t *testing.T) endpoint {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	config := &rest.Config{Host: "http://memory", Transport: server.New(complete.Settings()).Admin(), QPS: -1}
	done := make(chan error, 1)
	none := workloads.NewPlan(workloads.Rule{Kind: "Ingress", Hold: true}) // the real cluster has no controller of these
	go func() { done <- workloads.Run(ctx, config, workloads.Settings{Plan: none, AllKinds: true}) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("running stages: %v", err)
		}
	})
	return endpoint{config.Host, &http.Client{Transport: config.Transport}, func(*testing.T, *unstructured.Unstructured) {}}
}
