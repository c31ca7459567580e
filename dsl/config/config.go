// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package config reads the YAML form of an operator.
//
// It is strict: an unknown field, a duplicate key, a value of the wrong kind, an expression that does not compile
// and options that exclude each other are faults. It reports all faults, each with its file, line and column.
//
// Actions define their own form: this package knows no action by name. The form of an action is the type of the
// pointer that [actions.Action].Config returns: text, a number, a list, a map, any (plain JSON values), a type that
// unmarshals itself from text, or a struct of these with the tags of package dsl/form. Text must not be empty, and
// durations must be positive. A type must not contain itself.
package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"path/filepath"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/dsl/source"
)

// Load reads one operator from files and directories. From a directory, it reads the *.yaml and *.yml files in the
// order of their names. A file may have several documents. Parts that handlers use are read from files below the directory of
// their document's file. All documents of kind Operator must have the same name;
// the resources of the later ones are added to the first. Documents of other groups are skipped; see
// [dsl.Operator.Skipped].
//
// The registry has the available actions and functions. If all documents could be read, the functions beside add
// declarations in Go; then the whole operator is checked. The error is of type [source.Faults].
func Load(paths []string, registry *actions.Registry, beside ...func(*dsl.Operator)) (*dsl.Operator, error) {
	l := newLoader(registry, beside...)
	names, faults := source.Files(paths)
	l.fault(faults...)
	if len(paths) == 0 {
		l.fault(source.Fault{File: "configuration", Message: "no file was given"})
	}
	for _, name := range names {
		if data, err := l.reader.ReadFile(name); err != nil {
			l.fault(source.Unread(name, err))
		} else {
			l.add(name, data)
		}
	}
	return l.finish()
}

// Parse is [Load] for the text of a file; name is its name in faults.
func Parse(name string, data []byte, registry *actions.Registry, beside ...func(*dsl.Operator)) (*dsl.Operator, error) {
	l := newLoader(registry, beside...)
	l.add(name, data)
	return l.finish()
}

// loader collects the documents of one operator.
type loader struct {
	registry *actions.Registry
	beside   []func(*dsl.Operator)
	faults   source.Faults
	parts    []*part
	names    []string
	reader   source.Reader
	// pieces are the parts that handlers use, once for each use; texts are their files. A file with a fault is nil.
	pieces []*part
	texts  map[string]*pieceText
	// files have parts of the operator, and digest is that of their texts.
	files  []string
	digest hash.Hash
	// foreign are the documents that are not for an operator, with their kinds.
	foreign source.Faults
	// partial: something could not be read, so a missing value may exist.
	partial bool
	// size is the size of all documents so far.
	size source.Size
	cel  *expr.Compiler
	// lets are those of the operator; nil without any.
	lets *expr.Lets
	// places are the places of the operator's resources and handlers.
	places map[any]place
	// refused are the resources with an action that has a fault. The declarations of that action are not known.
	refused map[*dsl.Resource]bool
	// open are the resources with a schema and without handlers.
	open []*watched
}

func newLoader(registry *actions.Registry, beside ...func(*dsl.Operator)) *loader {
	return &loader{registry: registry, beside: beside, digest: sha256.New(), places: map[any]place{}, texts: map[string]*pieceText{}, refused: map[*dsl.Resource]bool{}}
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
		p := &part{Decoder: form.NewDecoder(tree), source: s, root: tree, dir: filepath.Dir(name)}
		in := &input{registry: l.registry}
		p.With = in
		whole := p.read()
		if !slices.Contains(l.files, name) {
			l.files = append(l.files, name)
			_, _ = l.digest.Write(data) // a hash takes all
		}
		l.resolve(p, in, nil)
		l.partial = l.partial || !whole || p.strays
		if whole {
			l.parts = append(l.parts, p)
		} else {
			l.faults = append(l.faults, p.faults()...)
		}
	}
}

// finish makes the operator from all parts.
func (l *loader) finish() (*dsl.Operator, error) {
	if l.size.Excess() != "" {
		return nil, l.all() // further checks would only repeat these faults
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
	op.Placed, op.Files = l.placed, l.files
	op.Digest = hex.EncodeToString(l.digest.Sum(nil))
	return op, nil
}

// placed adds to a fault its place in the configuration; see [dsl.Operator].
func (l *loader) placed(f *dsl.Fault) error {
	whole := f.Handler == nil && f.Resource == nil && f.Index == nil
	if whole || l.inGo(f.Place) {
		return f
	}
	on := l.placeOf(f.Place)
	return on.within(on.at, 0, 0, f.Err.Error())
}

// addBeside adds the declarations in Go. A machine in Go also needs fields in the schema of its resource.
func (l *loader) addBeside(op *dsl.Operator) {
	for _, add := range l.beside {
		add(op)
	}
	l.beside = nil
	for _, w := range l.open {
		w.customResource()
	}
}

// nothing is the fault of files that have no operator.
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
	for _, p := range slices.Concat(l.parts, l.pieces) {
		out = append(out, p.faults()...)
	}
	return l.once(out.Sorted())
}

// place is the place of a part of the operator.
type place struct {
	*part
	at path
}

// invalid notes the faults of the operator as a whole, except those that follow from something that could not be
// read.
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
	for _, note := range notes { // after all were compared with the faults noted before
		note()
	}
}

// inGo reports whether the part at the place was declared in Go.
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
	undeclared := f.Lacks == "owns" && l.refused[f.Resource] // the faulty action may declare the kinds
	return undeclared || own.tried() || around.tried() || l.placeOf(dsl.Place{Field: f.Lacks}).tried()
}

// mayBeElsewhere reports whether the handlers of an open resource may exist: mistyped, or in Go code that did not
// run.
func (l *loader) mayBeElsewhere(f *dsl.Fault, on place) bool {
	return f.Resource != nil && f.Resource.Open && (on.strays || len(l.beside) > 0)
}

// tried reports whether a value is there, or has a fault.
func (p place) tried() bool { return p.Has(p.at) || p.Faulty(p.at) }

// note notes a fault at the place.
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

// placeOf returns the place of a part. A field of the operator is placed in the first document that has it.
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

// flatten returns the errors that are joined in err.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || errors.Join(joined.Unwrap()...).Error() != err.Error() {
		return []error{err} // one error, perhaps with text around several
	}
	var out []error
	for _, one := range joined.Unwrap() {
		out = append(out, flatten(one)...)
	}
	return out
}
