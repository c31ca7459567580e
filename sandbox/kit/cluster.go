// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/sandbox/server"
)

// Cluster is a cluster in memory. Its methods fail the test when they cannot do what is asked. Handlers may call
// those that write objects, too.
type Cluster struct {
	t      testing.TB
	server *server.Server
	client dynamic.Interface
	log    *testLog
	// base is the context in which operators run.
	base context.Context //nolint:containedctx // processes start later, and again

	mu        sync.Mutex
	processes []*Process
	faults    []*fault
	// unlisted are the fields that were reported by missed.
	unlisted map[string]bool
}

// Run calls test in its own bubble with a new cluster. When test returns, everything that it has started is
// stopped. Test must use the t that it gets.
func Run(t *testing.T, test func(t *testing.T, c *Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, New(t))
	})
}

// New returns a new cluster. It must be called in a bubble of testing/synctest; [Run] is the usual way. Everything
// that was started is stopped when the test ends.
func New(t testing.TB) *Cluster {
	t.Helper()
	return On(t, server.New(server.Settings{}))
}

// On is [New] with a server of the caller's.
func On(t testing.TB, server *server.Server) *Cluster {
	t.Helper()
	c := &Cluster{t: t, server: server, log: newTestLog(t), base: context.Background()}
	client, err := dynamic.NewForConfig(configFor(c.server.Admin(), "kit"))
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	c.client = client
	t.Cleanup(c.stop)
	return c
}

// Config returns a config with all rights, for the test's own clients. Their writes do not count as an operator's.
func (c *Cluster) Config() *rest.Config { return configFor(c.server.Admin(), "kit") }

// Within makes the contexts of handlers have the values of ctx, for operators that start from now on.
func (c *Cluster) Within(ctx context.Context) { c.base = context.WithoutCancel(ctx) }

// Settle waits until nothing is left to do at the current time. No time passes.
func (c *Cluster) Settle() { synctest.Wait() }

// Advance lets time pass, and then settles.
func (c *Cluster) Advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// stop stops all processes.
func (c *Cluster) stop() {
	for _, p := range c.running() {
		if err := p.Stop(); err != nil {
			c.t.Errorf("stopping operator: %v", err)
		}
	}
}

func (c *Cluster) running() []*Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*Process(nil), c.processes...)
}

// resource finds a resource by its name in kubectl's form.
func (c *Cluster) resource(name string) server.Served {
	c.t.Helper()
	served, found := c.server.Lookup(c.parse(name))
	if !found {
		c.t.Fatalf("resource %s is not served", name)
	}
	return served
}

// parse parses a resource's name in kubectl's form.
func (c *Cluster) parse(name string) schema.GroupVersionResource {
	c.t.Helper()
	n, err := dsl.ParseResourceName(name)
	if err != nil {
		c.t.Fatal(err)
	}
	return schema.GroupVersionResource{Group: n.Group, Version: n.Version, Resource: n.Resource}
}

func (c *Cluster) parseAll(names []string) []schema.GroupResource {
	c.t.Helper()
	var out []schema.GroupResource
	for _, name := range names {
		out = append(out, c.parse(name).GroupResource())
	}
	return out
}

func configFor(link *server.Client, agent string) *rest.Config {
	return &rest.Config{Host: "http://cluster", Transport: link, UserAgent: agent, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: "application/json"}} // the server reads no protobuf
}
