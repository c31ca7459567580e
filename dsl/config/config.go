// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"os"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// Load reads one operator from files and directories; of a directory, its *.yaml and *.yml files
// in the order of their names. A file may hold several documents. All documents are of kind
// Operator and have the same name: the resources of the later ones are added to the first one's.
//
// The registry says which actions and functions there are. The error is of type [Faults].
func Load(paths []string, registry *dsl.Registry) (*dsl.Operator, error) {
	l := &loader{registry: registry}
	names, faults := files(paths)
	l.fault(faults...)
	if len(paths) == 0 {
		l.fault(Fault{File: "configuration", Message: "no file was given"})
	}
	for _, name := range names {
		if data, err := os.ReadFile(name); err != nil {
			l.fault(unread(name, err))
		} else {
			l.add(name, data)
		}
	}
	return l.finish()
}

// Parse is [Load] for text that is at hand; the faults give name as the file.
func Parse(name string, data []byte, registry *dsl.Registry) (*dsl.Operator, error) {
	l := &loader{registry: registry}
	l.add(name, data)
	return l.finish()
}

// loader gathers the documents of one operator.
type loader struct {
	registry *dsl.Registry
	faults   Faults
	parts    []*part
	names    []string
	// partial: something could not be read, so what is missing may be there.
	partial bool
	// size is that of all documents so far.
	size size
	cel  *expr.Compiler
}

func (l *loader) fault(faults ...Fault) {
	l.faults = append(l.faults, faults...)
	l.partial = l.partial || len(faults) > 0
}

// add reads the documents of a file.
func (l *loader) add(name string, data []byte) {
	l.names = append(l.names, name)
	if l.size.excess() != "" {
		return
	}
	s, faults := newSource(name, data)
	if len(faults) > 0 {
		l.fault(faults...)
		return
	}
	roots, fault := s.documents()
	if fault != nil {
		l.fault(*fault)
	}
	for _, root := range roots {
		tree, faults := expand(s, root, &l.size)
		if len(faults) > 0 {
			l.fault(faults...)
			continue
		}
		p := newPart(s, l.registry, tree)
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
	if l.size.excess() != "" {
		return nil, l.all() // it is not worth a look
	}
	if len(l.parts) == 0 && !l.partial {
		l.fault(Fault{File: l.names[0], Line: 1, Column: 1, Message: "there is no operator in here (want a document of kind " + Kind + ")"})
	}
	op := l.compile()
	if len(l.all()) == 0 {
		l.leftovers(op.Validate())
	}
	if len(l.all()) == 0 {
		schemas := schemasOf(op)
		for _, r := range op.Resources() {
			l.unfit(r.CheckSchemas(schemas.ofResource, schemas.ofKind))
		}
	}
	if faults := l.all(); len(faults) > 0 {
		return nil, faults
	}
	return op, nil
}

// all returns the faults of the loader and of its parts.
func (l *loader) all() Faults {
	out := slices.Clone(l.faults)
	for _, p := range l.parts {
		out = append(out, p.faults()...)
	}
	return out.sorted()
}

// leftovers notes what only the operator as a whole could tell.
func (l *loader) leftovers(err error) {
	for _, err := range flatten(err) {
		if f, ok := errors.AsType[*dsl.Fault](err); ok {
			if p, at := l.placeOf(f); p != nil {
				p.Fault(at, "%v", f.Err)
				continue
			}
		}
		l.parts[0].Fault("", "%v", err)
	}
}

// placeOf returns the place of a resource or handler that is at fault.
func (l *loader) placeOf(f *dsl.Fault) (*part, path) {
	for _, p := range l.parts {
		i := slices.IndexFunc(p.form.Resources, func(r resource) bool { return r.Resource == f.Resource })
		if i < 0 {
			continue
		}
		at, r := path("resources").Index(i), p.form.Resources[i]
		for key, list := range map[string][]handler{"handlers": r.Handlers, "schedule": r.Schedule} {
			j := slices.IndexFunc(list, func(h handler) bool { return h.ID == f.Handler })
			if f.Handler != "" && j >= 0 {
				return p, at.Key(key).Index(j)
			}
		}
		return p, at
	}
	return nil, ""
}

// unfit notes what checks have found.
func (l *loader) unfit(errs []error) {
	for _, err := range errs {
		if f, ok := errors.AsType[Fault](err); ok {
			l.fault(f)
		}
	}
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
