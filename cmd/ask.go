// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"context"
	"io"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/cmd/door"
	"github.com/handwerk-dev/handwerk/dsl"
)

// askFlags say which operator to ask, and how its answer is written.
type askFlags struct {
	config []string
	kube   kubeFlags
	target door.Target
	output string
}

// The formats of an answer.
const (
	asText = "text"
	asJSON = "json"
	asYAML = "yaml"
)

func (f *askFlags) add(set *pflag.FlagSet) {
	set.StringSliceVar(&f.config, "config", nil,
		"ask the operator of this `FILE|DIR` (default the only one in the cluster that leads)")
	set.StringVar(&f.target.Operator, door.OperatorFlag, "", "ask the operator of this `name`")
	set.StringVar(&f.target.Namespace, door.NamespaceFlag, "", "look for its Lease and its Pods in this `namespace` (default all)")
	set.StringVar(&f.target.Pod, door.PodFlag, "", "ask the process in this `Pod`, which need not lead (default namespace that of the context)")
	set.StringVar(&f.target.Address, door.AddressFlag, "", "ask the process at this `address`, as in 127.0.0.1:8082 or unix:/run/foo.sock")
	f.kube.add(set)
	f.addFormat(set)
}

func (f *askFlags) addFormat(set *pflag.FlagSet) {
	f.output = asText
	addChoice(set, &choice{value: &f.output, noun: "format", words: []string{asText, asJSON, asYAML}}, "output", "o", "how the answer is written")
	set.SortFlags = false
}

// open finds the process that is to be asked. The operator is that of the configuration, nil if none was given.
func (p *program) open(ctx context.Context, f *askFlags) (*door.Process, *dsl.Operator, error) {
	to := f.target
	op, err := p.declared(f.config)
	if err != nil {
		return nil, nil, err
	}
	if op != nil && to.Operator == "" {
		election := op.Settings.LeaderElection
		to.Operator = op.Name
		if to.Unlocked = len(f.config) > 0 && (election.Mode == "" || election.Mode == dsl.LeaderNone); !to.Unlocked {
			to.Lock = op.LeaderLock()
		}
		if to.Namespace == "" {
			to.Namespace = election.Namespace
		}
	}
	var config *rest.Config
	namespace := ""
	if to.Address == "" {
		if config, namespace, err = p.access(ctx, &f.kube); err != nil {
			return nil, nil, err
		}
		config.UserAgent = userAgent("handwerk-cli")
	}
	process, err := door.Open(ctx, config, namespace, to)
	return process, op, err
}

// declared returns the operator of the configuration, or the one that the program declares in Go. It returns nil without either.
func (p *program) declared(config []string) (*dsl.Operator, error) {
	if len(config) > 0 {
		return p.operator(config, func(*dsl.Operator) {})
	}
	op := &dsl.Operator{}
	for _, add := range p.extra {
		add(op)
	}
	if op.Name == "" {
		return nil, nil
	}
	return op, nil
}

// write writes an answer in the format that was asked for; text writes it for people.
func (f *askFlags) write(out io.Writer, answer any, text func() error) error {
	switch f.output {
	case asJSON:
		return writeJSON(out, answer)
	case asYAML:
		return answerYAML(out, answer)
	}
	return text()
}

// people writes a page for people. On a terminal, it breaks lines that are wider than the terminal.
func (p *program) people(out io.Writer, page *bytes.Buffer) error {
	_, err := io.WriteString(out, p.terminal(p.Out).fit(page.String()))
	return err
}

// colors reports whether text for people has colors.
func (p *program) colors() bool { return p.terminal(p.Out).colors }
