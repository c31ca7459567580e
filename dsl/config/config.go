// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package config reads the YAML form of an operator.
//
// The form is read strictly and whole: a field that is not known, a key that is there twice, a
// value of the wrong kind, an expression that does not compile or options that exclude each other
// are faults, and all of them are reported, each with its file, line and column.
//
// What an action takes is said by the action: this package knows none by name. An action's form
// is whatever [actions.Action].Config returns a pointer to: text, a number, a list, a map, any (plain
// values as JSON has them), a type that unmarshals itself from text, or a struct of these with the tags of
// package dsl/form. Text must not be empty and durations are more than zero. A type must not contain itself.
package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/dsl/source"
)

// Load reads one operator from files and directories; of a directory, its *.yaml and *.yml files
// in the order of their names. A file may hold several documents. All documents of kind
// Operator have the same name: the resources of the later ones are added to the first one's. Documents of other
// groups are skipped, see [dsl.Operator.Skipped].
//
// The registry says which actions and functions there are. The functions beside add what is declared in Go, when all
// documents could be read; then the whole is checked. The error is of type [source.Faults].
func Load(paths []string, registry *actions.Registry, beside ...func(*dsl.Operator)) (*dsl.Operator, error) {
	l := newLoader(registry, beside...)
	names, faults := source.Files(paths)
	l.fault(faults...)
	if len(paths) == 0 {
		l.fault(source.Fault{File: "configuration", Message: "no file was given"})
	}
	var reader source.Reader
	for _, name := range names {
		if data, err := reader.ReadFile(name); err != nil {
			l.fault(source.Unread(name, err))
		} else {
			l.add(name, data)
		}
	}
	return l.finish()
}

// Parse is [Load] for text that is at hand; the faults give name as the file.
func Parse(name string, data []byte, registry *actions.Registry, beside ...func(*dsl.Operator)) (*dsl.Operator, error) {
	l := newLoader(registry, beside...)
	l.add(name, data)
	return l.finish()
}

// loader gathers the documents of one operator.
type loader struct {
	registry *actions.Registry
	beside   []func(*dsl.Operator)
	faults   source.Faults
	parts    []*part
	names    []string
	// foreign are the documents of others, with what they are.
	foreign source.Faults
	// partial: something could not be read, so what is missing may be there.
	partial bool
	// size is that of all documents so far.
	size source.Size
	cel  *expr.Compiler
	// places are where the resources and handlers of the operator stand.
	places map[any]place
	// refused are the resources that have an action at fault, so what it declares is not known.
	refused map[*dsl.Resource]bool
	// open are the resources that have a schema and no handlers.
	open []*watched
}

func newLoader(registry *actions.Registry, beside ...func(*dsl.Operator)) *loader {
	return &loader{registry: registry, beside: beside, places: map[any]place{}, refused: map[*dsl.Resource]bool{}}
}

func (l *loader) fault(faults ...source.Fault) {
	l.faults = append(l.faults, faults...)
	l.partial = l.partial || len(faults) > 0
}

// add reads the documents of a file.
func (l *loader) add(name string, data []byte) {
	l.names = append(l.names, name)
	if l.size.Excess() != "" {
		return
	}
	s, faults := source.Read(name, data)
	if len(faults) > 0 {
		l.fault(faults...)
		return
	}
	roots, fault := s.Documents()
	if fault != nil {
		l.fault(*fault)
	}
	for _, root := range roots {
		if what, is := foreign(root); is {
			l.foreign = append(l.foreign, source.Fault{File: name, Line: root.Line, Column: root.Column, Message: what})
			continue
		}
		tree, faults := s.Expand(root, &l.size)
		if len(faults) > 0 {
			l.fault(faults...)
			continue
		}
		p := &part{Decoder: form.NewDecoder(tree), source: s, root: tree}
		p.With = l.registry
		whole := p.read()
		l.partial = l.partial || !whole || p.strays
		if whole {
			l.parts = append(l.parts, p)
		} else {
			l.faults = append(l.faults, p.faults()...)
		}
	}
}

// finish makes the operator of all parts.
func (l *loader) finish() (*dsl.Operator, error) {
	if l.size.Excess() != "" {
		return nil, l.all() // it is not worth a look
	}
	if len(l.parts) == 0 && !l.partial {
		l.fault(l.nothing())
	}
	op := l.compile()
	read := len(l.all()) == 0
	if read {
		l.addBeside(op)
	}
	l.invalid(op.Validate())
	if read {
		l.checkSchemas(op)
	}
	if faults := l.all(); len(faults) > 0 {
		return nil, faults
	}
	op.Placed = l.placed
	return op, nil
}

// placed gives a fault of what the configuration declares its place; see [dsl.Operator].
func (l *loader) placed(f *dsl.Fault) error {
	whole := f.Handler == nil && f.Resource == nil && f.Index == nil
	if whole || l.inGo(f.Place) {
		return f
	}
	on := l.placeOf(f.Place)
	return on.within(on.at, 0, 0, f.Err.Error())
}

// addBeside adds what is declared in Go. A machine in Go has fields in the schema of its resource, too.
func (l *loader) addBeside(op *dsl.Operator) {
	for _, add := range l.beside {
		add(op)
	}
	l.beside = nil
	for _, w := range l.open {
		w.customResource()
	}
}

// nothing is the fault of files without an operator.
func (l *loader) nothing() source.Fault {
	if len(l.foreign) > 0 {
		first := l.foreign[0]
		first.Message = fmt.Sprintf("want an operator (apiVersion %s, kind %s), found %s", APIVersion, Kind, first.Message)
		return first
	}
	return source.Fault{File: l.names[0], Line: 1, Column: 1, Message: "there is no operator in here (want a document of kind " + Kind + ")"}
}

// all returns the faults of the loader and of its parts.
func (l *loader) all() source.Faults {
	out := slices.Clone(l.faults)
	for _, p := range l.parts {
		out = append(out, p.faults()...)
	}
	return out.Sorted()
}

// place is where something of the operator stands.
type place struct {
	*part
	at path
}

// invalid notes what the operator as a whole has wrong, but for what follows from what could not be read.
func (l *loader) invalid(err error) {
	var notes []func()
	for _, err := range flatten(err) {
		f, placed := errors.AsType[*dsl.Fault](err)
		if !placed {
			f = &dsl.Fault{Err: err}
		}
		if l.inGo(f.Place) {
			l.fault(source.Fault{Message: f.Error()})
			continue
		}
		if on := l.placeOf(f.Place); on.part != nil && !l.follows(f, on) {
			notes = append(notes, func() { on.note(l, f) })
		}
	}
	for _, note := range notes { // once all were held against what was told before
		note()
	}
}

// inGo reports whether what is at the place was declared in Go.
func (l *loader) inGo(p dsl.Place) bool {
	declared := any(p.Handler)
	switch {
	case p.Handler != nil:
	case p.Index != nil:
		declared = p.Index
	case p.Resource != nil:
		declared = p.Resource
	default:
		return false
	}
	_, inYAML := l.places[declared]
	return !inYAML
}

// follows reports whether a fault follows from others.
func (l *loader) follows(f *dsl.Fault, on place) bool {
	switch {
	case f.Field == "" && on.Unread(on.at), f.Field != "" && on.Faulty(on.at), f.Resource == nil && f.Field == "resources" && l.partial:
		return true
	case slices.ContainsFunc(f.From, func(field string) bool {
		from := l.placeOf(dsl.Place{Resource: f.Resource, Handler: f.Handler, Field: field})
		return from.Faulty(from.at)
	}):
		return true
	case f.Lacks == "":
		return false
	case l.mayBeElsewhere(f, on):
		return true
	}
	if f.Lacks == "schedule" && slices.ContainsFunc([]string{"daemons", "machine"}, func(instead string) bool {
		return l.placeOf(dsl.Place{Resource: f.Resource, Field: instead}).tried()
	}) {
		return true
	}
	own, around := l.placeOf(dsl.Place{Resource: f.Resource, Handler: f.Handler, Field: f.Lacks}), l.placeOf(dsl.Place{Resource: f.Resource, Field: f.Lacks})
	undeclared := f.Lacks == "owns" && l.refused[f.Resource] // an action says what it makes
	return undeclared || own.tried() || around.tried() || l.placeOf(dsl.Place{Field: f.Lacks}).tried()
}

// mayBeElsewhere reports whether the handlers of an open resource may be there: mistyped, or in Go, which was not asked.
func (l *loader) mayBeElsewhere(f *dsl.Fault, on place) bool {
	return f.Resource != nil && f.Resource.Open && (on.strays || len(l.beside) > 0)
}

// tried reports whether a value is there, or was meant to be.
func (p place) tried() bool { return p.Has(p.at) || p.Faulty(p.at) }

// note notes a fault of what stands at the place.
func (p place) note(l *loader, f *dsl.Fault) {
	message := f.Err.Error()
	if f.First != nil {
		first := l.placeOf(*f.First)
		message += " (first at " + first.where(first.at) + ")"
	}
	if f.Unwanted {
		p.FaultKey(p.at, "%s", message)
	} else {
		p.Fault(p.at, "%s", message)
	}
}

// placeOf returns where something stands; what belongs to the operator, in the first part that has it.
func (l *loader) placeOf(p dsl.Place) place {
	out, found := l.places[p.Handler]
	if !found {
		out, found = l.places[p.Resource]
	}
	if !found {
		out, found = l.places[p.Index]
	}
	if !found && len(l.parts) > 0 {
		i := slices.IndexFunc(l.parts, func(part *part) bool { return part.Has(path(p.Field)) })
		out = place{part: l.parts[max(i, 0)]}
	}
	field := p.Field
	if p.Handler != nil && p.Handler.Machine != nil { // its place is that of the machine
		field = strings.TrimPrefix(strings.TrimPrefix(field, "machine"), ".")
	}
	out.at = out.at.Join(path(field))
	return out
}

// flatten returns the errors that were joined into err.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || errors.Join(joined.Unwrap()...).Error() != err.Error() {
		return []error{err} // one error, perhaps with words around several
	}
	var out []error
	for _, one := range joined.Unwrap() {
		out = append(out, flatten(one)...)
	}
	return out
}
