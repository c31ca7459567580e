// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached/wire"
	"github.com/handwerk-dev/handwerk/engine/cluster/kube"
	"github.com/handwerk-dev/handwerk/engine/cluster/leader"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// Settings configure the clients. All are required.
type Settings struct {
	// Config is not changed. The default of its user agent is "handwerk/" and the operator's name.
	Config *rest.Config
	// Operator may limit the rate of requests.
	Operator *dsl.Operator
	// Fence decides which requests leave the process: a [Fence], or a wrapper that records requests and sends none. It comes
	// after client-go's retries and its wait for the rate limit.
	Fence Wrapper
	// Metrics count the requests that have passed the fence. Outages record which requests get a response.
	Metrics *ops.Metrics
	Outages *Outages
}

// Wrapper puts a transport before another one.
type Wrapper interface {
	Transport(next http.RoundTripper) http.RoundTripper
}

// Clients are the ways to the API server.
type Clients struct {
	// Dynamic reads and writes objects. Caching lists and watches objects for caches. Metadata watches metadata alone. Slim writes,
	// and its responses have no managedFields.
	Dynamic, Slim dynamic.Interface
	Caching       *wire.Caching
	Metadata      metadata.Interface
	// Kubernetes sends Events and asks for access.
	Kubernetes kube.Interface
	// Discovery finds the served resources.
	Discovery discovery.DiscoveryInterfaceWithContext
	// Lock is for the leader's lock. It has a connection and a timeout of its own, so that a slow request of a handler cannot
	// cost the lease.
	Lock *kube.Clients
}

// Dial makes the clients. It sends no request.
func Dial(s Settings) (*Clients, error) {
	c, err := dial(s)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return c, nil
}

func dial(s Settings) (*Clients, error) {
	config := rest.CopyConfig(s.Config)
	if config.UserAgent == "" {
		config.UserAgent = "handwerk/" + s.Operator.Name
	}
	if config.WarningHandler == nil && config.WarningHandlerWithContext == nil {
		config.WarningHandlerWithContext = rest.NoWarnings{} // the transport sees which object they are about
		config.Wrap((&warnings{}).wrap)
	}
	lock := rest.CopyConfig(config)
	lock.QPS, lock.Timeout = -1, lockTimeout(s.Operator.Settings.LeaderElection.RenewDeadline)
	lock.Wrap(s.Outages.Transport)
	config.QPS, config.Burst = limit(s.Operator.Settings)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return s.Fence.Transport(s.Outages.Transport(s.Metrics.Transport(next)))
	})
	config = WithDeadline(config)
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	c := &Clients{}
	if c.Dynamic, err = wire.New(config, shared); err != nil {
		return nil, err
	}
	if c.Caching, err = wire.NewCaching(config, shared); err != nil {
		return nil, err
	}
	if c.Slim, err = wire.NewSlim(config, shared); err != nil {
		return nil, err
	}
	if c.Metadata, err = metadata.NewForConfigAndClient(metadata.ConfigFor(config), shared); err != nil {
		return nil, err
	}
	typed, err := kube.NewWith(config, shared)
	if err != nil {
		return nil, err
	}
	c.Kubernetes, c.Discovery = typed, typed.Discovery
	c.Lock, err = kube.New(lock)
	return c, err
}

// limit returns the rate limit of requests and its burst; negative for no limit.
func limit(s dsl.Settings) (qps float32, burst int) {
	switch {
	case s.QPS <= 0:
		return -1, 0
	case s.Burst == 0:
		return s.QPS, int(2*s.QPS) + 1
	}
	return s.QPS, s.Burst
}

// lockTimeout leaves time for a second try within the deadline for renewing.
func lockTimeout(renewDeadline time.Duration) time.Duration {
	if renewDeadline == 0 {
		renewDeadline = leader.DefaultRenewDeadline
	}
	return max(renewDeadline/2, time.Second)
}
