// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package actions is what writers of actions import: what an action is, and the registry of them and of the
// functions that configurations may call.
package actions

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// Registry holds what a configuration may name: functions for `call`, and the actions
// themselves. It is a value that main makes and passes in; there is no global one.
type Registry struct {
	functions map[string]dsl.Function
	actions   map[string]Action
	faults    []error
}

// Action is what a handler does when it is written in YAML. Its name is the key in the handler,
// and what stands under the key has the form that Config returns.
type Action struct {
	// Name is the YAML key. Required.
	Name string
	// Doc says in a sentence what the action does. Required: it is shown to authors.
	Doc string
	// Config returns a pointer to a new value of the action's configuration: a struct with yaml
	// tags, a scalar, or a type that says its form itself; see package dsl/form. It is decoded strictly, and
	// is part of the JSON Schema. What is at fault in it stays zero. Required.
	Config func() any
	// OneObject: what it does, it does to the object that is handled, so a schedule, which has none, cannot
	// have it.
	OneObject bool
	// Objects: what it does, it does to objects of the resource, so neither startup nor cleanup, which have none, can have it.
	Objects bool
	// Includes: the handler makes children, and asks [Build].IncludeWhen whether they are wanted.
	Includes bool
	// Build turns the configuration into the handler's code and what goes with it. An error is
	// reported with the place of the action; a [shape.Misfit] with the place it names; errors.Join
	// reports several. Required.
	Build func(b Build, config any) (Built, error)
}

// Built is what an action makes of its configuration.
type Built struct {
	// Func is the handler's code, Daemon that of a daemon: the one that Build asks for is required.
	Func   dsl.Func
	Daemon dsl.DaemonFunc
	// Filtered says in conditions of the object that a filter, which stands in a line of a file, keeps Func from acting.
	// Optional.
	Filtered func(s *dsl.Subject, filter string, says *dsl.Patch)
	// Brings are causes that Func needs beside those that the handler is declared with.
	Brings []dsl.Cause
	// NoOld: Func uses neither Request.Old nor Request.Diff.
	NoOld bool
	// Owns are the kinds of the children that the handler makes.
	Owns []schema.GroupVersionKind
	// Makers are the names under which Func makes children: [Build].ID where it makes any. Nil means that nobody knows.
	Makers []string
	// Gated are those of them whose step has a filter of its own.
	Gated []string
	// Children are those of them that have names.
	Children []shape.NamedChild
	// Checks hold the configuration against schemas. Their errors are as those of Build.
	Checks []shape.Check
	// Needs are what Func does, as those of [dsl.Function].
	Needs []dsl.Need
	// Reads is what Func is known to read, Sets what it is known to set of its object, and Conditions the
	// types of the conditions among that.
	Reads      dsl.Reads
	Sets       []dsl.Path
	Conditions []string
}

// Build is what an action gets besides its own configuration.
type Build struct {
	// Registry is the registry that the action was found in.
	Registry *Registry
	// Params are the handler's parameters, nil when it has none.
	Params dsl.Params
	// Resource is the resource that the handler belongs to.
	Resource dsl.ResourceName
	// ID is the handler's id.
	ID string
	// ResourceWide: the handler runs for the resource as a whole. See [dsl.Resource.Schedule].
	ResourceWide bool
	// Daemon: the handler is one. See [dsl.Resource.Daemon].
	Daemon bool
	// OperatorWide: it runs at the start or the end of the process; there is no resource. ResourceWide is set, too.
	OperatorWide bool
	// AtDeletion: the handler has the cause delete and no other.
	AtDeletion bool
	// NoFinalizer: no deletion waits for the handler, so the object may be gone when it runs.
	NoFinalizer bool
	// IncludeWhen says whether the children that the handler makes are wanted; nil where they are. It has been checked.
	IncludeWhen *Predicate
	// Vars are variables that the handler's expressions have beside those of all, in [dsl.Subject.Vars]: where there are
	// any, it runs for each of several entries, which may be of one object.
	Vars []string
	// Told: what comes of the handler, the conditions of the machine tell that it belongs to, and it has none of its own.
	Told bool
	// Kept is what the cache holds of the resource's objects; nil for all of them.
	Kept *shape.Kept
	// Siblings are all handlers of the resource, this one among them. They are only read.
	Siblings []Sibling
}

// Predicate is an expression that is true or false, and what it knows as params.
type Predicate struct {
	Text   string
	Params dsl.Params
}

// Sibling is a handler as an action's Build sees it.
type Sibling struct {
	// ID is the handler's id, Action the name of its action.
	ID, Action string
	// Each: it runs for each of several entries; see Build.Vars.
	Each bool
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry {
	return &Registry{functions: map[string]dsl.Function{}, actions: map[string]Action{}}
}

// Func registers a function that takes no parameters under a name.
func (r *Registry) Func(name string, fn dsl.Func) { r.Function(dsl.Function{Name: name, Func: fn}) }

// Daemon registers a daemon that takes no parameters under a name.
func (r *Registry) Daemon(name string, fn dsl.DaemonFunc) {
	r.Function(dsl.Function{Name: name, Daemon: fn})
}

// Function registers a function.
func (r *Registry) Function(f dsl.Function) {
	if _, found := r.functions[f.Name]; found {
		r.faults = append(r.faults, fmt.Errorf("registering function %s: the name is taken", f.Name))
	}
	if f.Name == "" || f.Func == nil && f.Daemon == nil {
		r.faults = append(r.faults, fmt.Errorf("registering function %q: name and code are required", f.Name))
	}
	if f.Func != nil && f.Daemon != nil {
		r.faults = append(r.faults, fmt.Errorf("registering function %s: it is for handlers or for daemons, and not for both", f.Name))
	}
	r.functions[f.Name] = f
}

// Action registers an action.
func (r *Registry) Action(a Action) {
	if _, found := r.actions[a.Name]; found {
		r.faults = append(r.faults, fmt.Errorf("registering action %s: the name is taken", a.Name))
	}
	if a.Name == "" || a.Config == nil || a.Build == nil {
		r.faults = append(r.faults, fmt.Errorf("registering action %q: name, config and build are required", a.Name))
	}
	r.actions[a.Name] = a
}

// Err returns what went wrong while registering, joined.
func (r *Registry) Err() error { return errors.Join(r.faults...) }

// LookupFunction returns the function of that name.
func (r *Registry) LookupFunction(name string) (dsl.Function, bool) {
	f, ok := r.functions[name]
	return f, ok
}

// Functions returns the names of all functions, sorted.
func (r *Registry) Functions() []string { return slices.Sorted(maps.Keys(r.functions)) }

// LookupAction returns the action of that name.
func (r *Registry) LookupAction(name string) (Action, bool) {
	a, ok := r.actions[name]
	return a, ok
}

// Actions returns the names of all actions, sorted.
func (r *Registry) Actions() []string { return slices.Sorted(maps.Keys(r.actions)) }
