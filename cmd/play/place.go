// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
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
	// patience is how long a kind may take to be served.
	patience time.Duration
}

// place connects to the cluster, or starts an API server in the process.
func (s Settings) place(ctx context.Context, name string, lines *lines) (*place, error) {
	p := &place{config: s.Cluster, close: func() {}, patience: serving}
	if p.config != nil {
		lines.say("operator %s runs in the cluster at %s, namespace %s, until Ctrl-C. What it writes there stays.", name, p.config.Host, s.Namespace)
	} else {
		lines.ordered = true
		p.patience = 0 // the API server in the process serves it at once
		memory, err := s.serve(ctx, name, lines)
		if err != nil {
			return nil, err
		}
		p.config, p.close = memory.Config(), memory.Stop
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
		return &observer{next: next, client: client, by: by, lines: lines, says: lines.wrote}
	})
	return out
}

const (
	// serving is how long a cluster may take to serve a new CRD, and lookAgain the time between two looks.
	serving   = 10 * time.Second
	lookAgain = 200 * time.Millisecond
)

// find returns the resource of a kind. In a cluster a CRD is served some time after it was created.
func (p *place) find(ctx context.Context, kind schema.GroupVersionKind) (mapping *meta.RESTMapping, err error) {
	waited := wait.PollUntilContextTimeout(ctx, lookAgain, p.patience, true, func(context.Context) (bool, error) {
		mapping, err = p.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			p.mapper.Reset()
			mapping, err = p.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		}
		return !meta.IsNoMatchError(err), nil
	})
	return mapping, cmp.Or(err, waited)
}
