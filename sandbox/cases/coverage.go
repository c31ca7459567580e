// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/policy"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// Part is a part of an operator that cases can run: a handler, an answer of its when or of a condition in its
// expressions, a rule about requests, or a way of a machine.
type Part struct {
	// Operator is the name of the operator, and Name that of the part.
	Operator, Name string
	// Times is how often it has run.
	Times int
}

// coverage counts how often the parts of an operator have run, in all cases together.
type coverage struct {
	mu    sync.Mutex
	times map[string]int
	// rules are the names of rules by those of their policies. They are known before a case runs.
	rules map[string]string
}

// expect notes a part that may run.
func (c *coverage) expect(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.times[name] += 0
}

// ran counts a part that has run.
func (c *coverage) ran(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.times[name]++
}

// parts are all parts, by name.
func (c *coverage) parts(operator string) (out []Part) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(c.times)) {
		out = append(out, Part{operator, name, c.times[name]})
	}
	return out
}

// Coverage returns the parts of all operators that have been read.
func (s *Suite) Coverage() (out []Part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range sortedKeys(s.loaded) {
		if p := s.loaded[key]; p.op != nil && p.err == nil {
			out = append(out, p.covered.parts(p.op.Name)...)
		}
	}
	return out
}

// count makes a handler count its attempts, and the answers of its when.
func (c *coverage) count(r *dsl.Resource, h *dsl.Handler) {
	name := "handler " + r.Name.Resource + "/" + h.ID
	if h.Machine != nil {
		for s := range h.Machine.All() {
			for _, way := range s.Ways() {
				c.expect(wayOf(r.Name.Resource, h.Machine, s.Name, way.To))
			}
		}
	} else {
		c.expect(name)
	}
	if when := h.When; when != nil {
		c.expect("when of " + name + " is true")
		c.expect("when of " + name + " is false")
		h.When = func(s *dsl.Subject) (bool, error) {
			holds, err := when(s)
			switch {
			case err != nil:
			case holds:
				c.ran("when of " + name + " is true")
			default:
				c.ran("when of " + name + " is false")
			}
			return holds, err
		}
	}
}

// rule makes a rule about requests count the requests about which it decides: in the operator if it needs a webhook, and in the API
// server, which knows it by the name of its policy, if not.
func (c *coverage) rule(op *dsl.Operator, r *dsl.Resource, h *dsl.Handler) {
	name := "rule " + r.Name.Resource + "/" + h.ID
	c.expect(name)
	c.rules[policy.Name(op, home, r, h)] = name
	decide := h.Admission.Func
	h.Admission.Func = func(ctx context.Context, r *dsl.AdmissionRequest) error {
		c.ran(name)
		return decide(ctx, r)
	}
}

// decided counts a request about which a policy of the API server decides.
func (c *coverage) decided(policy string) {
	if name, is := c.rules[policy]; is {
		c.ran(name)
	}
}

// branch counts the answers of a condition of a handler's expressions.
func (c *coverage) branch(handler, what, condition string) (answered func(holds bool)) {
	name := func(answer bool) string {
		return fmt.Sprintf("%s of handler %s is %t: %s", what, handler, answer, condition)
	}
	yes, no := name(true), name(false)
	c.expect(yes)
	c.expect(no)
	return func(holds bool) {
		if holds {
			c.ran(yes)
		} else {
			c.ran(no)
		}
	}
}

func wayOf(resource string, m *dsl.Machine, from, to string) string {
	return "transition " + resource + "/" + m.ID() + " " + from + " → " + to
}

// transitions counts the ways of machines that a write of the operator tells of.
func (r *runner) transitions(writes []kit.Write) {
	for _, w := range writes {
		resource, is := strings.CutSuffix(w.Resource, "/status")
		if !is || w.Code >= 400 {
			continue
		}
		for of, h := range r.program.op.Handlers() {
			if h.Machine == nil || of.Name.Resource != resource {
				continue
			}
			list, _, _ := unstructured.NestedSlice(w.Body, h.Machine.Field(dsl.BookHistory)...)
			for _, item := range list {
				way, _ := item.(map[string]any)
				from, _ := way["from"].(string)
				to, _ := way["to"].(string)
				if from != "" && r.program.covered.knows(wayOf(resource, h.Machine, from, to)) {
					r.program.covered.ran(wayOf(resource, h.Machine, from, to))
				}
			}
		}
	}
}

func (c *coverage) knows(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.times[name]
	return known
}
