// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// Rule says what becomes of the objects that it matches. Without Hold and Fail they become ready.
type Rule struct {
	// Kind is a kind, such as Deployment, or its plural in any case. Empty means all kinds.
	Kind string
	// Namespace and Name may be globs, as in web-*. Empty means all.
	Namespace, Name string
	// Hold leaves objects as they are: a Deployment makes no ReplicaSets, a Pod stays Pending, a Pod that is ready
	// stays so.
	Hold bool
	// Fail makes objects fail for this reason: a Pod for CrashLoopBackOff, ImagePullBackOff, Unready or
	// Unschedulable, among others; a Job for one of a Job's. A PersistentVolumeClaim, a Service or an Ingress that
	// fails stays pending.
	Fail string
	// Delay is the time until a Pod is ready, or has succeeded if it is a Job's, and until a claim is bound or an
	// address assigned. A deleted Pod ends after it, too, but not later than its grace period.
	Delay time.Duration
}

// Plan says what becomes of which objects. A rule for a workload holds for its Pods, too. Of several rules that
// match an object, the last one applies. The methods are safe for use by several goroutines.
type Plan struct {
	mu      sync.Mutex
	rules   []Rule
	changed map[chan struct{}]bool
}

// NewPlan returns a plan of these rules. Without rules everything becomes ready at once.
func NewPlan(rules ...Rule) *Plan {
	return &Plan{rules: slices.Clone(rules), changed: map[chan struct{}]bool{}}
}

// Set adds a rule after the others. It replaces an earlier rule for exactly the same kind, namespace and name.
func (p *Plan) Set(rule Rule) {
	p.change(func() {
		p.drop(rule)
		p.rules = append(p.rules, rule)
	})
}

// Drop removes the rule for exactly this kind, namespace and name, and reports whether there was one. The rules before it
// apply again.
func (p *Plan) Drop(rule Rule) (found bool) {
	p.change(func() {
		before := len(p.rules)
		p.drop(rule)
		found = len(p.rules) < before
	})
	return found
}

// Replace replaces all rules.
func (p *Plan) Replace(rules ...Rule) { p.change(func() { p.rules = slices.Clone(rules) }) }

// Rules returns the rules in their order.
func (p *Plan) Rules() []Rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.rules)
}

func (p *Plan) drop(rule Rule) {
	p.rules = slices.DeleteFunc(p.rules, func(other Rule) bool {
		return strings.EqualFold(other.Kind, rule.Kind) && other.Namespace == rule.Namespace && other.Name == rule.Name
	})
}

func (p *Plan) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
	for c := range p.changed {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// subscribe returns a channel that signals changes of the plan, and a function that ends that.
func (p *Plan) subscribe() (changed <-chan struct{}, end func()) {
	c := make(chan struct{}, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed[c] = true
	return c, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.changed, c)
	}
}

// of returns the rule that applies to an object with its owners; the zero value if there is none.
func (p *Plan) of(line []reference) Rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, rule := range slices.Backward(p.rules) {
		if slices.ContainsFunc(line, rule.matches) {
			return rule
		}
	}
	return Rule{}
}

// reference names an object.
type reference struct {
	kind, plural, namespace, name string
}

func (r Rule) matches(o reference) bool {
	kind := r.Kind == "" || strings.EqualFold(r.Kind, o.kind) || strings.EqualFold(r.Kind, o.plural)
	return kind && glob(r.Namespace, o.namespace) && glob(r.Name, o.name)
}

// glob reports whether a name matches a pattern. An empty pattern matches all, an invalid one none.
func glob(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return pattern == "" || err == nil && ok
}
