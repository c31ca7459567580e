// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/handwerk-dev/handwerk/bench/wire"
)

// state is what the job children knows of a Foo: what the Foo says, and how many replicas its ConfigMap has, absent
// where there is none.
type state struct {
	uid                      string
	wanted, reported, config int64
}

const absent = -1

// followBoth follows the ConfigMaps, and once all of them are known the Foos as well.
func (c *controller) followBoth(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	synced, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		stop(c.follow(ctx, c.configs, readConfig, func(e event) { c.configSeen(ctx, e) }, func() { close(synced) }))
	}()
	select {
	case <-synced:
	case <-ctx.Done():
	}
	stop(c.follow(ctx, c.foos, readFoo, func(e event) { c.fooSeen(ctx, e) }, func() {}))
	<-ended // it gives to the workers, too
	return context.Cause(ctx)
}

func (c *controller) fooSeen(ctx context.Context, e event) {
	c.mu.Lock()
	if e.gone {
		delete(c.known, e.name)
	} else {
		s := c.state(e.name)
		s.uid, s.wanted, s.reported = e.uid, e.wanted, e.reported
	}
	c.mu.Unlock()
	if !e.gone {
		c.give(e)
	}
}

// configSeen notes a ConfigMap. A Foo that is not known yet comes by itself.
func (c *controller) configSeen(ctx context.Context, e event) {
	if e.gone {
		e.wanted = absent
	}
	c.mu.Lock()
	s := c.state(e.name)
	news := s.uid != "" && s.config != e.wanted
	s.config = e.wanted
	e.uid = s.uid
	c.mu.Unlock()
	if news {
		c.give(e)
	}
}

// state is that of a Foo; mu must be held.
func (c *controller) state(name string) *state {
	s := c.known[name]
	if s == nil {
		s = &state{config: absent, reported: -1}
		c.known[name] = s
	}
	return s
}

// children keeps a ConfigMap for each Foo, and its status.
func (c *controller) children(ctx context.Context, e event) error {
	c.mu.Lock()
	s, known := c.known[e.name]
	if !known || s.uid == "" {
		c.mu.Unlock()
		return nil
	}
	now := *s
	s.config = now.wanted // what the watch will say, which may come before the answer
	c.mu.Unlock()
	if err := c.reporter.Saw(e.name); err != nil {
		return err
	}
	if now.config != now.wanted {
		if err := c.write(ctx, e.name, now); err != nil {
			return err
		}
	}
	if now.reported == now.wanted {
		return nil
	}
	return c.report(ctx, e.name, now.wanted)
}

// write makes or changes a ConfigMap.
func (c *controller) write(ctx context.Context, name string, s state) error {
	if s.config == absent {
		body := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s","ownerReferences":[{`+
			`"apiVersion":"samplecontroller.k8s.io/v1alpha1","kind":"Foo","name":"%s","uid":"%s","controller":true,"blockOwnerDeletion":true}]},`+
			`"data":{"replicas":"%d"}}`, name, name, s.uid, s.wanted)
		return c.client.Send(ctx, http.MethodPost, c.configs, wire.JSON, body)
	}
	return c.client.Send(ctx, http.MethodPatch, c.configs+"/"+name, wire.Merge, fmt.Appendf(nil, `{"data":{"replicas":"%d"}}`, s.wanted))
}

func readConfig(s *wire.Scan, e *event, version *[]byte) error {
	var err error
	s.Members(func(key []byte) {
		switch string(key) {
		case "metadata":
			readMetadata(s, e, version)
		case "data":
			s.Members(func(key []byte) {
				text := s.Text()
				if string(key) == "replicas" {
					e.wanted, err = strconv.ParseInt(string(text), 10, 64)
				}
			})
		default:
			s.Skip()
		}
	})
	return err
}
