// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package actions has what authors of actions import: the type of an action, and the registry of actions and of the
// functions that configurations may call.
package actions

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// Registry holds the names that a configuration may use: functions for `call`, and the actions themselves. It is a
// value that main makes and passes on; there is no global registry.
type Registry struct {
	functions map[string]dsl.Function
	actions   map[string]Action
	composer  Composer
	faults    []error
	// instead, when set, says which function takes the place of a function.
	instead func(f dsl.Function, found bool) (dsl.Function, bool)
	// branches, when set, observes the branches of a handler's expressions.
	branches func(handler, what, condition string) func(holds bool)
}

// Action is what a handler does when it is written in YAML. Its name is a key in the handler. The value of that key
// has the form that Config returns.
type Action struct {
	// Name is the YAML key. Required.
	Name string
	// Doc says in a sentence what the action does. Required: authors see it.
	Doc string
	// Config returns a pointer to a new value of the action's configuration: a struct with yaml tags, a scalar, or
	// a type that defines its own form; see package dsl/form. It is decoded strictly, and is part of the JSON
	// Schema. Fields with faults stay zero. A value with a method Says() string says there in a few words what this
	// handler acts on, as in "v1 Node", for drawings and roles; empty if it is not known. Required.
	Config func() any
	// OneObject: the action acts on the handled object, so schedules cannot have it.
	OneObject bool
	// Objects: the action acts on objects of the resource, so startups and cleanups cannot have it.
	Objects bool
	// Children returns the names of the children that a configuration makes, as they stand there. Nil if it makes none.
	Children func(config any) []string
	// Includes: the action makes children, and evaluates [Build].IncludeWhen to decide whether they are desired.
	Includes bool
	// Build makes the handler's code, and what belongs to it, from the configuration. An error is reported at the
	// place of the action, a [shape.Misfit] at the place that it names; errors.Join returns several. Required.
	Build func(b Build, config any) (Built, error)
}

// Built is what an action makes from its configuration.
type Built struct {
	// Func is the code of a handler, Daemon that of a daemon. The one that Build asks for is required.
	Func   dsl.Func
	Daemon dsl.DaemonFunc
	// Filtered reports in conditions of the object that a filter keeps Func from running. The filter is given as
	// the line of a file. Optional.
	Filtered func(s *dsl.Subject, filter string, says *dsl.Patch)
	// Brings are further causes of the handler that Func needs, such as [dsl.Delete] to remove its children.
	// The cause reconcile also stands for the causes of Reads.
	Brings []dsl.Cause
	// NoOld: Func uses neither Request.Old nor Request.Diff.
	NoOld bool
	// Owns are the kinds of the children that the handler makes.
	Owns []schema.GroupVersionKind
	// Makers are the names under which Func makes children: [Build].ID if it makes any. Nil means that they are not
	// known.
	Makers []string
	// Calls are the Makers if Func is Go code and the handler's only action; nil if they are not known.
	Calls []string
	// Patches are the names under which Func patches objects that are no children: [Build].ID if it does. Nil means that
	// they are not known.
	Patches []string
	// Gated are the Makers whose step has its own filter.
	Gated []string
	// Children are those of them that have names.
	Children []shape.NamedChild
	// Checks check the configuration against schemas. Their errors are reported like those of Build.
	Checks []shape.Check
	// Needs are the rights that Func needs, as in [dsl.Function].
	Needs []dsl.Need
	// Reads is what Func is known to read. Sets are the fields that it is known to set in its object, and
	// Conditions the types of conditions among them.
	Reads      dsl.KnownReads
	Sets       []dsl.Path
	Conditions []string
	// Leaves reports whether Func leaves one of Conditions as it is for an object. Nil means that it sets all of them.
	Leaves func(s *dsl.Subject, condition string) bool
	// Asks are the conditions within Func, for people who ask.
	Asks []Ask
}

// Ask is a condition within the code of a handler.
type Ask struct {
	// At is its place below the handler, as in [shape.Misfit].Path. Place, its file and line, is set by package config.
	At    []string
	Place string
	// Explain evaluates it for an object, for each element if it has several answers, and says what decided it.
	Explain func(s *dsl.Subject) []dsl.Clause
}

// Within returns the condition as one of a part of the handler, as in "step 2".
func (a Ask) Within(part string) Ask {
	explain := a.Explain
	a.Explain = func(s *dsl.Subject) []dsl.Clause {
		out := explain(s)
		for i := range out {
			out[i].What = part + ": " + out[i].What
		}
		return out
	}
	return a
}

// Build is the input of an action besides its own configuration.
type Build struct {
	// Registry is the registry that has the action.
	Registry *Registry
	// Params are the handler's parameters, or nil.
	Params dsl.Params
	// Resource is the resource that the handler belongs to.
	Resource dsl.ResourceName
	// ID is the handler's id.
	ID string
	// ResourceWide: the handler runs for the resource as a whole. See [dsl.Resource.Schedule].
	ResourceWide bool
	// Daemon: the handler is a daemon. See [dsl.Resource.Daemon].
	Daemon bool
	// OperatorWide: the handler runs when the process starts or stops, without a resource. ResourceWide is set,
	// too.
	OperatorWide bool
	// AtDeletion: the handler has only the cause delete.
	AtDeletion bool
	// Restores: the handler makes a missing child again.
	Restores bool
	// Always: the handler is level-triggered and has no filter, so it runs for each state of an object, and for the same state again in
	// each new process.
	Always bool
	// NoFinalizer: deletions do not wait for the handler, so the object may be gone when it runs.
	NoFinalizer bool
	// IncludeWhen says whether the handler's children are desired; nil means that they are. It has been checked.
	IncludeWhen *Predicate
	// Vars are additional variables of the handler's expressions, in [dsl.Subject.Vars]. With them, the handler
	// runs for each of several entries, which may belong to one object.
	Vars []string
	// Without has the variables that the handler's expressions cannot have, each with the reason; a compiler takes them by Without.
	Without map[string]string
	// Lets are named expressions that the handler's expressions may use; a compiler takes them by WithLets. Nil means none.
	Lets *expr.Lets
	// Admission: the handler is a rule about requests. See [dsl.Resource.Mutate].
	Admission bool
	// Reported: the machine's conditions report the result of the handler, so the handler sets no condition.
	Reported bool
	// Kept says which parts of the resource's objects the cache holds; nil means all.
	Kept *shape.Kept
	// Siblings are all handlers of the resource, including this one. They are read-only.
	Siblings []Sibling
}

// Predicate is an expression that is true or false, with its variable params.
type Predicate struct {
	Program *expr.Program
	Params  dsl.Params
}

// Sibling is a handler as Build of an action sees it.
type Sibling struct {
	// ID is the handler's id, Action the name of its action.
	ID, Action string
	// Each: the handler runs for each of several entries; see Build.Vars.
	Each bool
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry {
	return &Registry{functions: map[string]dsl.Function{}, actions: map[string]Action{}}
}

// Func registers a function without parameters under a name.
func (r *Registry) Func(name string, fn dsl.Func) { r.Function(dsl.Function{Name: name, Func: fn}) }

// Daemon registers a daemon without parameters under a name.
func (r *Registry) Daemon(name string, fn dsl.DaemonFunc) {
	r.Function(dsl.Function{Name: name, Daemon: fn})
}

// Admission registers a function that decides about requests, under a name.
func (r *Registry) Admission(name string, fn dsl.AdmissionFunc) {
	r.Function(dsl.Function{Name: name, Admission: fn, Needs: []dsl.Need{}})
}

// Function registers a function.
func (r *Registry) Function(f dsl.Function) {
	if _, found := r.functions[f.Name]; found {
		r.faults = append(r.faults, fmt.Errorf("registering function %s: the name is taken", f.Name))
	}
	if f.Name == "" || f.Func == nil && f.Daemon == nil && f.Admission == nil {
		r.faults = append(r.faults, fmt.Errorf("registering function %q: name and code are required", f.Name))
	}
	if f.Func != nil && f.Daemon != nil || f.Admission != nil && (f.Func != nil || f.Daemon != nil) {
		r.faults = append(r.faults, fmt.Errorf("registering function %s: it is for handlers, for daemons or for rules about requests, and not for several", f.Name))
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

// Err returns the faults of registrations, joined.
func (r *Registry) Err() error { return errors.Join(r.faults...) }

// LookupFunction returns the function of that name.
func (r *Registry) LookupFunction(name string) (dsl.Function, bool) {
	f, ok := r.functions[name]
	if r.instead != nil {
		f.Name = name
		return r.instead(f, ok)
	}
	return f, ok
}

// Instead returns a registry with the same actions, which asks choose for each function that a configuration names. It
// gets the registered function, or for an unknown name a function that has the name alone.
func (r *Registry) Instead(choose func(f dsl.Function, found bool) (dsl.Function, bool)) *Registry {
	out := *r
	out.instead = choose
	return &out
}

// Observed returns a registry with the same actions and functions, which tells branches about the expressions of
// handlers, for the coverage of tests: about each condition when it is compiled, and by the function that it returns about
// each of its answers. What is ?:, includeWhen or when. The handler is named as in foos/web.
func (r *Registry) Observed(branches func(handler, what, condition string) (answered func(holds bool))) *Registry {
	out := *r
	out.branches = branches
	return &out
}

// Branches observes the branches of a handler's expressions. Nil means that they are not observed.
func (r *Registry) Branches(of dsl.ResourceName, id string) func(what, condition string) (answered func(holds bool)) {
	if r == nil || r.branches == nil {
		return nil
	}
	return func(what, condition string) func(bool) { return r.branches(of.Resource+"/"+id, what, condition) }
}

// Functions returns the names of all functions, sorted.
func (r *Registry) Functions() []string { return slices.Sorted(maps.Keys(r.functions)) }

// FunctionsThat returns the names of the functions that fit, sorted.
func (r *Registry) FunctionsThat(fit func(dsl.Function) bool) []string {
	return slices.DeleteFunc(r.Functions(), func(name string) bool { return !fit(r.functions[name]) })
}

// LookupAction returns the action of that name.
func (r *Registry) LookupAction(name string) (Action, bool) {
	a, ok := r.actions[name]
	return a, ok
}

// Actions returns the names of all actions, sorted.
func (r *Registry) Actions() []string { return slices.Sorted(maps.Keys(r.actions)) }
