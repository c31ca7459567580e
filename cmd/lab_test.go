// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// lab is a cluster with an operator op of Foos, and the Foo web. Run runs a command line there.
func lab(t *testing.T, play func(t *testing.T, c *kit.Cluster, run func(args string) (code int, said string))) {
	t.Helper()
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: handwerk-system}}`)
		c.Serve(kit.Resource{Name: "foos.v1.example.com", Kind: "Foo"})
		op := dsl.New("op")
		op.Resource("foos.v1.example.com", func(foo *dsl.Resource) {
			foo.OnReconcile("sync", func(context.Context, *dsl.Request) error { return nil })
		})
		c.Start(op, func(e *engine.Settings) { e.Namespace = "handwerk-system" })
		c.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 1}}`)
		c.Settle()
		play(t, c, func(args string) (int, string) {
			b := newBench(t)
			b.login = func(context.Context) (*rest.Config, error) { return c.Config(), nil }
			code := b.execute(context.WithoutCancel(t.Context()), strings.Split(args, " "))
			return code, b.out.String() + b.err.String()
		})
	})
}
