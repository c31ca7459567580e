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
	// end says that it is the bookmark after all that there was.
	end bool
}

// initial asks for everything that is there, a bookmark after it, and then for what changes.
const initial = "?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"

// followFoos follows the Foos until the context ends.
func (c *controller) followFoos(ctx context.Context) error {
	return c.follow(ctx, c.foos, readFoo, func(e event) {
		if !e.gone {
			c.give(e)
		}
	}, func() {})
}

// reader reads the object of an event that the scan stands before.
type reader func(s *wire.Scan, e *event, version *[]byte) error

// follow watches until the context ends, and goes on where it was when the server ends a watch, as it does now and then.
// What is there in the beginning is given when all of it has come, and then synced is called: a server ends a watch whose
// reader makes it busy before that, and then all of it comes again.
func (c *controller) follow(ctx context.Context, path string, read reader, give func(event), synced func()) error {
	target, complete := path+initial, false
	for ctx.Err() == nil {
		frames, err := c.client.Watch(ctx, target, wire.JSON)
		if err != nil {
			return err
		}
		var version []byte
		var first []event
		for err == nil {
			var frame []byte
			if frame, err = frames.Next(); err != nil {
				break
			}
			var e event
			if e, err = parse(frame, read, &version); err != nil {
				break
			}
			switch {
			case e.end && !complete:
				complete = true
				for _, e := range first {
					give(e)
				}
				first = nil
				synced()
			case e.name == "": // a bookmark
			case complete:
				give(e)
			default:
				first = append(first, e)
			}
		}
		frames.Close()
		if !errors.Is(err, io.EOF) {
			return err
		}
		if complete && len(version) > 0 {
			target = path + "?watch=true&allowWatchBookmarks=true&resourceVersion=" + string(version)
		}
	}
	return ctx.Err()
}

// parse reads an event.
func parse(frame []byte, read reader, version *[]byte) (event, error) {
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
		return e, err
	case s.Bad() || string(kind) == "ERROR":
		return e, fmt.Errorf("watching: %s", frame)
	}
	e.end = string(kind) == "BOOKMARK" && bytes.Contains(frame, []byte("k8s.io/initial-events-end"))
	e.gone = string(kind) == "DELETED"
	return e, nil
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
