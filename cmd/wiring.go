// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"io"

	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/cluster/access"
	"github.com/handwerk-dev/handwerk/engine/cluster/crd"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
	"github.com/handwerk-dev/handwerk/engine/operate/cleanup"
	"github.com/handwerk-dev/handwerk/engine/operate/preflight"
)

// podNamespace is the file with the pod's namespace, which the kubelet writes.
const podNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// parts are the packages that the commands use; tests replace them.
type parts struct {
	load      func(paths []string, registry *actions.Registry, beside ...func(*dsl.Operator)) (*dsl.Operator, error)
	schema    func(registry *actions.Registry) ([]byte, error)
	engine    func(op *dsl.Operator, s engine.Settings) (machine, error)
	inCluster func() (*rest.Config, error)
	// install installs an operator's CRDs in the cluster. Check checks the operator against the cluster, and try the CRD of a resource.
	install func(context.Context, *dsl.Operator, *rest.Config, crd.Settings) error
	check   func(ctx context.Context, op *dsl.Operator, own dsl.Knowledge, config *rest.Config) (preflight.Findings, error)
	try     func(context.Context, *dsl.Operator, *rest.Config, *dsl.Resource) (crd.Trial, error)
	// lookup reads from the cluster which resources it serves; reviewer asks it for the rights of an account.
	lookup   func(context.Context, *dsl.Operator, *rest.Config) (rbac.Lookup, error)
	reviewer func(config *rest.Config, account string) (rbac.Reviewer, error)
	// cleaner takes away what an operator has left.
	cleaner func(context.Context, *dsl.Operator, cleanup.Settings) (*cleanup.Cleaner, error)
	// parse reads a configuration that is not in a file.
	parse func(name string, data []byte, registry *actions.Registry, beside ...func(*dsl.Operator)) (*dsl.Operator, error)
	// asks reports whether a person can be asked through the reader.
	asks func(io.Reader) bool
	// shows reports whether the writer is a terminal.
	shows func(io.Writer) bool
	// width returns the number of columns of a terminal; zero if it is not known.
	width func(io.Writer) int
	// podNamespace is the file with the pod's namespace.
	podNamespace string
}

// realParts returns the parts of a real program.
func realParts() parts {
	return parts{
		load:   config.Load,
		schema: config.Schema,
		engine: func(op *dsl.Operator, s engine.Settings) (machine, error) {
			return engine.New(op, s)
		},
		inCluster:    rest.InClusterConfig,
		install:      crd.Install,
		check:        preflight.Check,
		try:          crd.Try,
		lookup:       access.Lookup,
		reviewer:     access.Reviewer,
		cleaner:      cleanup.New,
		parse:        config.Parse,
		asks:         func(in io.Reader) bool { return isTerminal(in) },
		shows:        func(out io.Writer) bool { return isTerminal(out) },
		width:        terminalWidth,
		podNamespace: podNamespace,
	}
}
