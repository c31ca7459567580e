// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package kube reaches the API groups of Kubernetes that an operator itself uses. A program that makes a clientset of client-go
// links the clients of all groups, which are as large as the engine. The typed client of the core group alone
// adds 1.5 MB, so [Clients.Core] is a REST client.
package kube

import (
	"errors"
	"net/http"

	"k8s.io/client-go/discovery"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	events "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Interface is the part of client-go's kubernetes.Interface that an operator uses.
type Interface interface {
	AuthenticationV1() authentication.AuthenticationV1Interface
	AuthorizationV1() authorization.AuthorizationV1Interface
	CoordinationV1() coordination.CoordinationV1Interface
	EventsV1() events.EventsV1Interface
}

// Clients are clients that share their connections and their rate limit.
type Clients struct {
	// Discovery finds the served resources.
	Discovery *discovery.DiscoveryClient

	authentication *authentication.AuthenticationV1Client
	authorization  *authorization.AuthorizationV1Client
	coordination   *coordination.CoordinationV1Client
	core           *rest.RESTClient
	events         *events.EventsV1Client
}

var _ Interface = (*Clients)(nil)

// New returns clients with connections of their own. It sends no request.
func New(config *rest.Config) (*Clients, error) {
	config = rest.CopyConfig(config)
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return NewWith(config, client)
}

// NewWith is New with the connections of an HTTP client.
func NewWith(config *rest.Config, client *http.Client) (*Clients, error) {
	config = rest.CopyConfig(config)
	if config.RateLimiter == nil && config.QPS > 0 {
		if config.Burst <= 0 {
			return nil, errors.New("a rate limit needs a burst")
		}
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst)
	}
	c := &Clients{}
	var errs [6]error
	c.Discovery, errs[0] = discovery.NewDiscoveryClientForConfigAndClient(config, client)
	c.authentication, errs[1] = authentication.NewForConfigAndClient(config, client)
	c.authorization, errs[2] = authorization.NewForConfigAndClient(config, client)
	c.coordination, errs[3] = coordination.NewForConfigAndClient(config, client)
	c.core, errs[4] = newCore(config, client)
	c.events, errs[5] = events.NewForConfigAndClient(config, client)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return c, nil
}

// AuthenticationV1 asks who somebody is.
func (c *Clients) AuthenticationV1() authentication.AuthenticationV1Interface {
	return c.authentication
}

// AuthorizationV1 asks what somebody may do.
func (c *Clients) AuthorizationV1() authorization.AuthorizationV1Interface { return c.authorization }

// CoordinationV1 has Leases.
func (c *Clients) CoordinationV1() coordination.CoordinationV1Interface { return c.coordination }

// EventsV1 has Events.
func (c *Clients) EventsV1() events.EventsV1Interface { return c.events }
