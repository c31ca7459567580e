// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	text "github.com/handwerk-dev/handwerk/dsl/source"
)

// Suite runs cases of one program. Operators are read once for all their cases.
type Suite struct {
	registry *actions.Registry
	beside   []func(*dsl.Operator)
	cel      func() (*expr.Compiler, error)

	programs expressions
	// branches: the branches of expressions are counted, too.
	branches bool

	mu     sync.Mutex
	loaded map[string]*program
	// named are the functions that operators call.
	named map[string]bool
}

// NewSuite returns a suite of a program with these actions and functions. The functions beside add declarations in
// Go, as in cmd.Main.
func NewSuite(registry *actions.Registry, beside ...func(*dsl.Operator)) *Suite {
	s := &Suite{beside: beside, cel: sync.OnceValues(expr.New), loaded: map[string]*program{}, named: map[string]bool{},
		programs: expressions{all: map[string]*expr.Program{}}}
	s.registry = registry.Instead(func(f dsl.Function, found bool) (dsl.Function, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.named[f.Name] = true
		return recorded(f, found)
	})
	return s
}

// functions are those of the program, and those that the operators read so far call.
func (s *Suite) functions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(sortedKeys(s.named), s.registry.Functions()...)
}

// Lacks says which function the cases of a file need and the program lacks; empty if it has all of them.
func (s *Suite) Lacks(f *File) string {
	for _, name := range f.Needs {
		if !slices.Contains(s.registry.Functions(), name) {
			return "the program lacks the function " + name
		}
	}
	return ""
}

// program is an operator with the CRDs beside it.
type program struct {
	once sync.Once
	op   *dsl.Operator
	crds []*unstructured.Unstructured
	err  error
	// covered counts what of the operator has run.
	covered coverage
}

// load returns the operator of a configuration.
func (s *Suite) load(paths []string) (*program, error) {
	key := strings.Join(paths, "\n")
	s.mu.Lock()
	p := s.loaded[key]
	if p == nil {
		p = &program{covered: coverage{times: map[string]int{}, rules: map[string]string{}}}
		s.loaded[key] = p
	}
	s.mu.Unlock()
	p.once.Do(func() { p.err = p.read(s, paths) })
	return p, p.err
}

func (p *program) read(s *Suite, paths []string) (err error) {
	names, faults := text.Files(paths)
	if len(faults) > 0 {
		return faults
	}
	registry := s.registry
	if s.branches {
		registry = registry.Observed(p.covered.branch)
	}
	if p.op, err = s.operator(registry, paths, names); err != nil {
		return err
	}
	if err := p.op.Validate(); err != nil {
		return err
	}
	p.watch()
	p.findCRDs(text.Beside(paths))
	return nil
}

// operator reads the operator. One that is declared in Go alone needs no configuration.
func (s *Suite) operator(registry *actions.Registry, paths, names []string) (*dsl.Operator, error) {
	if len(s.beside) > 0 && !slices.ContainsFunc(names, func(name string) bool { return says(name, config.APIVersion) }) {
		op := &dsl.Operator{}
		for _, add := range s.beside {
			add(op)
		}
		return op, nil
	}
	return config.Load(paths, registry, s.beside...)
}

// says reports whether a file has a text in it. One that cannot be read may have it.
func says(name, words string) bool {
	data, err := text.ReadFile(name)
	return err != nil || bytes.Contains(data, []byte(words))
}

// findCRDs collects the CRDs of the operator, and those in files that it has not itself.
func (p *program) findCRDs(names []string) {
	own := map[string]bool{}
	for _, r := range p.op.Resources() {
		if r.CRD != nil {
			crd := &unstructured.Unstructured{Object: r.CRD}
			own[crd.GetName()] = true
			p.crds = append(p.crds, crd)
		}
	}
	for _, name := range names {
		if !says(name, crdKind) {
			continue // most files beside an operator are examples and cases, and to parse them takes time
		}
		objects, err := text.Objects(name)
		if err != nil {
			continue // it is no file of objects
		}
		for _, o := range objects {
			if o.GetKind() == crdKind && !own[o.GetName()] {
				own[o.GetName()] = true
				p.crds = append(p.crds, o)
			}
		}
	}
}

const crdKind = "CustomResourceDefinition"

// renewal is the time between two renewals of a Lease in a case. It is almost the default renew deadline. Renewals cost requests in
// each pause of a case, and no other process competes for the Lease. An operator with times of its own keeps them.
const renewal = 8 * time.Second

// elect sets how a case elects the leader. A leader for life is a Pod, and the operator of a case has none.
func elect(e *dsl.LeaderElection) {
	switch {
	case e.Mode == dsl.LeaderLife:
		*e = dsl.LeaderElection{}
	case e.Mode == dsl.LeaderLease && e.LeaseDuration+e.RenewDeadline+e.RetryPeriod == 0:
		e.RetryPeriod = renewal
	}
}

// watch makes the handlers of an operator note their attempts in the journal of the case, and its timers run on time: a
// case has to come out the same each time.
func (p *program) watch() {
	elect(&p.op.Settings.LeaderElection)
	for _, r := range p.op.Resources() {
		for _, h := range r.Admissions() {
			p.covered.rule(p.op, r, h)
		}
	}
	for r, h := range p.op.Handlers() {
		p.covered.count(r, h)
		name := "handler " + r.Name.Resource + "/" + h.ID
		if h.Timing != nil && !h.AtTime() {
			h.Timing.Jitter = -1
			if period := h.Timing.Every + h.Timing.Pause; h.Delay == nil && period > 0 {
				h.Delay = &dsl.Delay{Fixed: period} // as for a new object; the engine draws it for others
			}
		}
		if h.Daemon != nil {
			fn := h.Daemon.Func
			h.Daemon.Func = func(ctx context.Context, r *dsl.DaemonRequest) error {
				p.covered.ran(name)
				return fn(ctx, r)
			}
		}
		if fn := h.Func; fn != nil {
			h.Func = func(ctx context.Context, r *dsl.Request) error {
				if j := journalOf(ctx); j != nil {
					j.ran(h.ID, r)
				}
				p.covered.ran(name)
				return fn(ctx, r)
			}
		}
	}
}

// recorded returns what is called instead of a function: it notes the call, and does what the case says. A function
// that the program lacks may be one of a handler or a daemon, with any parameters.
func recorded(f dsl.Function, found bool) (dsl.Function, bool) {
	real, daemon := f.Func, f.Daemon
	if !found {
		f.Params = map[string]any{}
	}
	call := func(ctx context.Context, o *unstructured.Unstructured, params map[string]any, patch *dsl.Patch, real func() error) error {
		j := journalOf(ctx)
		if j == nil {
			return errors.New("there is no case")
		}
		j.called(callOf(f.Name, o, params))
		if s, replaced := j.stubs[f.Name]; replaced || !found {
			return s.do(j, f.Name, patch)
		}
		return real()
	}
	if !found || real != nil {
		f.Func = func(ctx context.Context, r *dsl.Request) error {
			return call(ctx, r.Object, r.Params, r.Patch, func() error { return real(ctx, r) })
		}
	}
	if !found || daemon != nil {
		f.Daemon = func(ctx context.Context, r *dsl.DaemonRequest) error {
			return call(ctx, r.Object, r.Params, r.Patch, func() error { return daemon(ctx, r) })
		}
	}
	if !found { // a rule whose code is elsewhere admits all
		f.Admission = func(context.Context, *dsl.AdmissionRequest) error { return nil }
	}
	return f, true
}
