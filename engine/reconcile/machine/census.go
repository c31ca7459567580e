// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// Census counts the objects of a resource by state: objects with their own progress, whatever the handler's filters.
// Reconciles update it with the objects that they read and write, because a scrape that read the cache would decode all
// objects. Outside of a term of leadership it is empty. Its methods are safe for use by several goroutines; without
// machines they do nothing.
type Census struct {
	machines []*dsl.Machine

	mu sync.Mutex
	// posts are the objects of each machine; nil outside of a term.
	posts []map[cache.ObjectName]post
}

// post is the state of an object in a machine.
type post struct {
	// state is the number of the state; for an undeclared one it is the number of states.
	state int
	since int64 // seconds
}

// NewCensus returns a census outside of a term.
func NewCensus(machines []*dsl.Machine) *Census { return &Census{machines: machines} }

// Begin begins a term with an empty census.
func (c *Census) Begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.posts = make([]map[cache.ObjectName]post, len(c.machines))
	for i := range c.posts {
		c.posts[i] = map[cache.ObjectName]post{}
	}
}

// End ends the term.
func (c *Census) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.posts = nil
}

// Note notes the states of the object of a key; nil if it is gone.
func (c *Census) Note(key cache.ObjectName, o *unstructured.Unstructured) {
	if len(c.machines) == 0 {
		return
	}
	at := make([]post, len(c.machines))
	has := make([]bool, len(c.machines))
	for i, m := range c.machines {
		if o == nil {
			continue
		}
		var b Book
		if b, has[i] = Read(m, o); has[i] {
			if b.Since.IsZero() { // the machine's next run corrects it
				b.Since = now()
			}
			at[i] = post{numberOf(m, b.State), b.Since.Unix()}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, known := range c.posts {
		if has[i] {
			known[key] = at[i]
		} else {
			delete(known, key)
		}
	}
}

// numberOf returns the number of a state in a machine.
func numberOf(m *dsl.Machine, name string) (n int) {
	for s := range m.All() {
		if s.Name == name {
			break
		}
		n++
	}
	return n
}

// Stats counts the objects by machine and state, with each state of each machine once; nothing outside of a term.
// Objects in undeclared states are counted together, if there are any.
func (c *Census) Stats() (out []ops.StateStats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, known := range c.posts {
		m := c.machines[i]
		of := make([]ops.StateStats, 0, len(m.States)+len(m.Deletion)+1)
		for s := range m.All() {
			of = append(of, ops.StateStats{Machine: m.ID(), State: s.Name})
		}
		of = append(of, ops.StateStats{Machine: m.ID(), State: StateUnknown})
		for _, p := range known {
			s := &of[p.state]
			if since := time.Unix(p.since, 0); s.Objects == 0 || since.Before(s.Oldest) {
				s.Oldest = since
			}
			s.Objects++
		}
		if last := len(of) - 1; of[last].Objects == 0 {
			of = of[:last]
		}
		out = append(out, of...)
	}
	return out
}
