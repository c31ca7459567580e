// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"io/fs"
	"maps"
	slashed "path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl/crd"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/dsl/shape"
	"github.com/handwerk-dev/handwerk/dsl/source"
)

// PartKind is the kind of a part's document.
const PartKind = "Part"

var (
	_ form.Form = (*partDocument)(nil)
	_ form.Form = (*parameters)(nil)
	_ form.Form = (*use)(nil)
)

type partKind string

// Choices returns the one kind.
func (partKind) Choices() (string, []string) { return "kind", []string{PartKind} }

// partDocument is the form of a part: what stands for an action wherever the part is used.
type partDocument struct {
	APIVersion apiVersion     `yaml:"apiVersion" required:"true" doc:"The version of this form of configuration."`
	Kind       partKind       `yaml:"kind" required:"true" doc:"Always Part."`
	Doc        string         `yaml:"doc" doc:"A sentence for people that says what the part does."`
	Parameters parameters     `yaml:"parameters" min:"1" mistaken:"params,inputs,args" doc:"The parameters, which the expressions of the part know as variables. Each is a type and, behind a bar, markers, as in integer | default=1 minimum=1, in the form of the fields of a schema; one that is not required and has no default may be null. Absent: none."`
	Let        lets           `yaml:"let" min:"1" mistaken:"vars,variables,locals,define" doc:"Named expressions, which all expressions of the part know as variables. They may use each other and the parameters. Absent: none."`
	With       map[string]any `yaml:"with" doc:"The parameters of the Go function that the part calls. Expressions read them as params."`
	Steps      []step         `yaml:"steps" doc:"Several actions in order, instead of one. Such a part stands for the action of a handler, and not for a step."`

	doing
}

// ReadForm fills a part; see [handler.ReadForm].
func (p *partDocument) ReadForm(d *form.Decoder, at path, n *yaml.Node) bool {
	return oneAction(d, at, n, p, "part", &p.doing)
}

// DescribeForm describes a part.
func (p *partDocument) DescribeForm(d *form.Describer) *form.Schema {
	return withAction(d, reflect.TypeFor[partDocument](), anyAction)
}

// parameters are the declarations of a part's parameters.
type parameters struct{ crd.Fields }

// ReadForm reads them as fields of a schema.
func (p *parameters) ReadForm(d *form.Decoder, at path, n *yaml.Node) bool {
	return p.Fields.ReadForm(d, at, n)
}

// DescribeForm describes texts.
func (p *parameters) DescribeForm(*form.Describer) *form.Schema {
	return &form.Schema{Type: "object", AdditionalProperties: &form.Schema{Type: "string", MinLength: 1}}
}

// piece is a part as one use has it. Each use reads it again: what actions make of their configuration belongs to one handler.
type piece struct {
	*part
	own        partDocument
	parameters []crd.Parameter
}

// pieceText is the text of a part's file, which is read once.
type pieceText struct {
	*source.Text
	root *yaml.Node
}

// resolve reads the parts that a document uses, and those that they use. The way has the files that led here.
func (l *loader) resolve(p *part, in *input, way []string) {
	for _, u := range in.uses {
		if name, ok := p.local(u); ok {
			u.piece = l.piece(p, u, name, way)
		}
	}
}

// local returns the name of a part's file. It notes a fault if the file is not below the directory of the configuration:
// that is what is reviewed, mounted and copied together.
func (p *part) local(u *use) (name string, ok bool) {
	if u.File == "" {
		return "", false // its fault is reported
	}
	name = slashed.Clean(filepath.ToSlash(u.File))
	if !filepath.IsLocal(u.File) || slices.Contains(strings.Split(filepath.ToSlash(u.File), "/"), "..") {
		p.Fault(u.at.Key("file"), "want a path from the directory of the configuration that stays in it, as in parts/web.yaml, found %s", form.Quoted(u.File))
		return "", false
	}
	return name, true
}

// piece reads a part for one use; nil if it has a fault that leaves nothing of it.
func (l *loader) piece(p *part, u *use, name string, way []string) *piece {
	if slices.Contains(way, name) {
		p.Fault(u.at.Key("file"), "the parts use each other in a circle: %s", strings.Join(append(slices.Clone(way[slices.Index(way, name):]), name), " → "))
		return nil
	}
	text := l.text(p, u, name)
	if text == nil || l.size.Excess() != "" {
		return nil
	}
	user := p.where(u.at)
	tree, faults := text.Expand(text.root, &l.size)
	if len(faults) > 0 {
		l.fault(usedAt(faults, user)...)
		return nil
	}
	out := &piece{part: &part{Decoder: form.NewDecoder(tree), source: text.Text, root: tree, dir: p.dir, user: user}}
	in := &input{registry: l.registry}
	out.With = in
	l.pieces = append(l.pieces, out.part)
	if !out.own.ReadForm(out.Decoder, "", tree) || out.Faulty(parametersKey) && len(out.own.Parameters.Fields) == 0 {
		return nil // without any parameters, uses of them would be faults that only follow
	}
	out.declare()
	l.resolve(out.part, in, append(slices.Clone(way), name))
	return out
}

// declare reads the declarations of the parameters. Those with faults take any value.
func (p *piece) declare() {
	var faults []*shape.Misfit
	p.parameters, faults = crd.Parameters(p.own.Parameters.Fields)
	for _, fault := range faults {
		p.unfit(parametersKey, parametersKey, fault)
	}
	if len(faults) > 0 {
		for _, name := range slices.Sorted(maps.Keys(p.own.Parameters.Fields)) {
			p.parameters = append(p.parameters, crd.Parameter{Name: name})
		}
	}
}

// text returns the text of a part's file. Its faults are reported once.
func (l *loader) text(p *part, u *use, name string) *pieceText {
	file := filepath.Join(p.dir, filepath.FromSlash(name))
	if known, found := l.texts[file]; found {
		return known
	}
	data, err := l.reader.ReadBelow(p.dir, filepath.FromSlash(name))
	if err != nil {
		if pathErr, is := errors.AsType[*fs.PathError](err); is {
			err = pathErr.Err
		}
		p.Fault(u.at.Key("file"), "reading part %s: %v", name, err)
		return nil
	}
	if !slices.Contains(l.files, file) {
		l.files = append(l.files, file)
		_, _ = l.digest.Write(data) // a hash takes all
	}
	text, faults := partText(file, data)
	l.fault(usedAt(faults, p.where(u.at))...)
	l.texts[file] = text
	return text
}

// partText reads the text of a part's file, which has one document; nil if it has a fault.
func partText(file string, data []byte) (*pieceText, source.Faults) {
	s, faults := source.Read(file, data)
	if len(faults) > 0 {
		return nil, faults
	}
	roots, fault := s.Documents()
	switch {
	case fault != nil:
		return nil, source.Faults{*fault}
	case len(roots) == 0:
		return nil, source.Faults{{File: file, Line: 1, Column: 1, Message: "there is no part in here (want a document of kind " + PartKind + ")"}}
	case len(roots) > 1:
		return nil, source.Faults{{File: file, Line: roots[1].Line, Column: roots[1].Column, Message: "a part has a file of its own, with one document"}}
	}
	return &pieceText{s, roots[0]}, nil
}

// usedAtWords begin what a fault says of the use.
const usedAtWords = " (used at "

// usedAt adds to faults of a part where it is used; empty for no part.
func usedAt(faults source.Faults, user string) source.Faults {
	out := slices.Clone(faults)
	for i := range out {
		if user != "" {
			out[i].Message += usedAtWords + user + ")"
		}
	}
	return out
}

// once drops faults of files beside the operator that are reported where a handler uses them as parts, too.
func (l *loader) once(faults source.Faults) source.Faults {
	if len(l.texts) == 0 {
		return faults
	}
	return slices.DeleteFunc(faults, func(f source.Fault) bool {
		return slices.ContainsFunc(faults, func(other source.Fault) bool {
			return other.File == f.File && other.Line == f.Line && strings.HasPrefix(other.Message, f.Message+usedAtWords)
		})
	})
}

// twice says what to do about two children of one name if a use of a part makes one of them; empty for other children.
func (p place) twice(first place) string {
	if p.user == first.user {
		return ""
	}
	return ": give the use of the part a name for its children, as in as: front"
}
