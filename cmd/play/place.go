// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// place is where the operator works.
type place struct {
	config *rest.Config
	client dynamic.Interface
	mapper meta.ResettableRESTMapper
	close  func()
}

// place connects to the cluster, or starts an API server in the process.
func (s Settings) place(ctx context.Context, name string, lines *lines) (*place, error) {
	p := &place{config: s.Cluster, close: func() {}}
	if p.config == nil {
		server, err := s.serve(ctx, name, lines)
		if err != nil {
			return nil, err
		}
		p.config, p.close = server.config(), server.close
	}
	config := p.observed("play", lines, nil)
	var err error
	if p.client, err = dynamic.NewForConfig(config); err != nil {
		p.close()
		return nil, fmt.Errorf("connecting: %w", err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		p.close()
		return nil, fmt.Errorf("connecting: %w", err)
	}
	p.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))
	return p, nil
}

// operator returns the config with which the operator works.
func (p *place) operator(name string, lines *lines) *rest.Config {
	return p.observed(name, lines, handlerOf)
}

// observed returns a config for a client whose writes have lines. By names who made a request, if it is not the client.
func (p *place) observed(client string, lines *lines, by func(*http.Request) string) *rest.Config {
	out := rest.CopyConfig(p.config)
	out.UserAgent = client + " handwerk/play"
	out.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &observer{next: next, client: client, by: by, say: lines.wrote}
	})
	return out
}
