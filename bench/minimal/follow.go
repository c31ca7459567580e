// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/handwerk-dev/handwerk/bench/wire"
)

// event is what is read of an event of a watch. Of a ConfigMap it is its name, and as wanted its replicas.
type event struct {
	name, uid        string
	wanted, reported int64
	// deleting says that the Foo is being deleted, gone that it is; held that it has the finalizer.
	deleting, gone, held bool
}

// initial asks for everything that is there, a bookmark after it, and then for what changes.
const initial = "?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"

// followFoos follows the Foos until the context ends.
func (c *controller) followFoos(ctx context.Context) error {
	return c.follow(ctx, c.foos, readFoo, func(e event) {
		if !e.gone {
			c.give(ctx, e)
		}
	}, nil)
}

// reader reads the object of an event that the scan stands before.
type reader func(s *wire.Scan, e *event, version *[]byte) error

// follow watches until the context ends, and goes on where it was when the server ends a watch, as it does now and
// then. It calls synced once, when everything that was there was given.
func (c *controller) follow(ctx context.Context, path string, read reader, give func(event), synced func()) error {
	target := path + initial
	for ctx.Err() == nil {
		frames, err := c.client.Watch(ctx, target, wire.JSON)
		if err != nil {
			return err
		}
		var version []byte
		for err == nil {
			var frame []byte
			if frame, err = frames.Next(); err == nil {
				err = handle(frame, read, give, &synced, &version)
			}
		}
		frames.Close()
		if !errors.Is(err, io.EOF) {
			return err
		}
		if len(version) > 0 {
			target = path + "?watch=true&allowWatchBookmarks=true&resourceVersion=" + string(version)
		}
	}
	return ctx.Err()
}

// handle reads an event and gives it.
func handle(frame []byte, read reader, give func(event), synced *func(), version *[]byte) error {
	e := event{wanted: -1, reported: -1}
	var kind []byte
	var err error
	s := wire.NewScan(frame)
	s.Members(func(key []byte) {
		switch string(key) {
		case "type":
			kind = s.Text()
		case "object":
			if string(kind) == "BOOKMARK" || string(kind) == "ERROR" {
				read = readRest
			}
			err = read(s, &e, version)
		default:
			s.Skip()
		}
	})
	switch {
	case err != nil:
		return err
	case s.Bad() || string(kind) == "ERROR":
		return fmt.Errorf("watching: %s", frame)
	case string(kind) == "BOOKMARK":
		if *synced != nil && bytes.Contains(frame, []byte("k8s.io/initial-events-end")) {
			(*synced)()
			*synced = nil
		}
		return nil
	}
	e.gone = string(kind) == "DELETED"
	give(e)
	return nil
}

// readRest reads what is no object.
func readRest(s *wire.Scan, e *event, version *[]byte) error {
	s.Members(func(key []byte) {
		if string(key) == "metadata" {
			readMetadata(s, e, version)
			return
		}
		s.Skip()
	})
	return nil
}

func readFoo(s *wire.Scan, e *event, version *[]byte) error {
	s.Members(func(key []byte) {
		switch string(key) {
		case "metadata":
			readMetadata(s, e, version)
		case "spec":
			readNumber(s, "replicas", &e.wanted)
		case "status":
			readNumber(s, "availableReplicas", &e.reported)
		default:
			s.Skip()
		}
	})
	return nil
}

func readMetadata(s *wire.Scan, e *event, version *[]byte) {
	s.Members(func(key []byte) {
		switch string(key) {
		case "name":
			e.name = string(s.Text())
		case "uid":
			e.uid = string(s.Text())
		case "resourceVersion":
			*version = append((*version)[:0], s.Text()...)
		case "deletionTimestamp":
			s.Text()
			e.deleting = true
		case "finalizers":
			s.Elements(func() { e.held = string(s.Text()) == mine || e.held })
		default:
			s.Skip()
		}
	})
}

// readNumber reads one member of an object.
func readNumber(s *wire.Scan, name string, into *int64) {
	s.Members(func(key []byte) {
		if string(key) == name {
			*into = s.Int()
			return
		}
		s.Skip()
	})
}
