// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl/form"
)

// sections are the maps of a form, each described once.
type sections struct {
	outline *form.Outline
	// root heads the section of the form as a whole. Within begins the anchors of its fields, so that those of several forms
	// differ; empty for the operator's.
	root, within string
	all          []*section
	// targets are those that were written.
	targets map[string]bool
}

// section describes a map.
type section struct {
	form.Block
	// doc describes the field that has the map.
	doc string
	// around is the section of the map around it; nil for the whole.
	around *section
	// of is the section of a map with all these fields and others; nil if there is none.
	of *section
	// again is an earlier section with the same fields, so this one is not written; nil if there is none.
	again *section
}

// newSections finds the maps of a form, and which of them repeat others.
func newSections(outline *form.Outline, root string) *sections {
	s := &sections{outline: outline, root: root, targets: map[string]bool{}}
	s.add(outline.Whole(), nil)
	for _, one := range s.all {
		one.of = s.larger(one)
	}
	for _, one := range s.all {
		if first := s.first(one); one.of == nil && first != one {
			one.again = first
		}
	}
	return s
}

// without has the sections that another form has, too, described there alone.
func (s *sections) without(other *sections) {
	for _, one := range s.all {
		same := func(o *section) bool {
			return o.again == nil && o.of == nil && len(o.Fields) == len(one.Fields) && one.Part(o.Block)
		}
		if i := slices.IndexFunc(other.all, same); i >= 0 {
			one.again, one.of = other.all[i], nil
		}
	}
}

// add adds the maps of a field, and those below.
func (s *sections) add(f form.Field, around *section) {
	for _, block := range s.outline.Blocks(f) {
		if block.Foreign() {
			continue
		}
		one := &section{Block: block, doc: f.Doc, around: around}
		s.all = append(s.all, one)
		for _, field := range block.Fields {
			s.add(field, one)
		}
	}
}

// larger returns the section with the most fields that has all those of another one, and more; nil if there is none.
func (s *sections) larger(one *section) (largest *section) {
	for _, other := range s.all {
		more := len(other.Fields) > len(one.Fields) && (largest == nil || len(other.Fields) > len(largest.Fields))
		if more && one.Part(other.Block) {
			largest = other
		}
	}
	return largest
}

// first returns the first section with the same fields, those within parts of others aside.
func (s *sections) first(one *section) *section {
	for _, other := range s.all {
		if len(other.Fields) == len(one.Fields) && one.Part(other.Block) && !other.withinPart() {
			return other
		}
	}
	return one
}

// withinPart reports whether a map around it is a part of another one.
func (one *section) withinPart() bool {
	for around := one.around; around != nil; around = around.around {
		if around.of != nil {
			return true
		}
	}
	return false
}

// written returns the section in which the fields of a map are described.
func (s *sections) written(block form.Block) *section {
	i := slices.IndexFunc(s.all, func(one *section) bool { return one.Place == block.Place && one.Title == block.Title })
	if i < 0 {
		return nil
	}
	return cmp.Or(s.all[i].again, s.all[i])
}

// heading returns the heading of a section, without marks.
func (s *sections) heading(one *section) string {
	if one.Place == "" {
		return s.root
	}
	if one.Title != "" {
		return one.Place + ": " + one.Title
	}
	return one.Place
}

// link returns a link to a section.
func (s *sections) link(label string, to *section) string {
	return fmt.Sprintf("[%s](#%s)", label, anchor(s.heading(to)))
}

// contents lists the sections.
func (s *sections) contents() string {
	var out strings.Builder
	for _, one := range s.all {
		if one.again != nil {
			continue
		}
		label := s.root
		if one.Place != "" {
			label = marked(one)
		}
		line := "* " + s.link(label, one)
		if one.doc != "" {
			line += ": " + text(sentence(one.doc))
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}

// marked returns the heading of a section within the form.
func marked(one *section) string {
	return strings.TrimSuffix(code(one.Place)+": "+one.Title, ": ")
}

// write writes the sections.
func (s *sections) write(out *strings.Builder) {
	for _, one := range s.all {
		switch {
		case one.again != nil:
			continue
		case one.Place == "":
			fmt.Fprintf(out, "\n### %s\n", s.root)
		default:
			fmt.Fprintf(out, "\n### %s\n", marked(one))
		}
		if one.doc != "" {
			fmt.Fprintf(out, "\n%s\n", text(one.doc))
		}
		if one.of != nil {
			fmt.Fprintf(out, "\nThese fields of %s: %s.\n", s.link(code(one.of.Place), one.of), s.named(one))
			continue
		}
		s.table(out, one)
	}
}

// named lists the fields of a map by their names, with links to those of the map that has them, too.
func (s *sections) named(one *section) string {
	var out []string
	for _, f := range one.Fields {
		out = append(out, fmt.Sprintf("[%s](#%s)", code(f.Name), s.path(one.of.Place+"."+f.Name)))
	}
	return strings.Join(out, ", ")
}

// table writes the fields of a map. Where several lists share a form, a column says which have a field.
func (s *sections) table(out *strings.Builder, one *section) {
	shared := slices.ContainsFunc(s.all, func(other *section) bool { return other.of == one }) &&
		slices.ContainsFunc(one.Fields, func(f form.Field) bool { return len(f.In) > 0 })
	if shared {
		out.WriteString("\n| field | type | default | in | meaning |\n|---|---|---|---|---|\n")
	} else {
		out.WriteString("\n| field | type | default | meaning |\n|---|---|---|---|\n")
	}
	for _, f := range one.Fields {
		fmt.Fprintf(out, "| %s%s | %s | %s |", s.target(f), code(f.Name), s.kind(f), byDefault(f))
		if shared {
			fmt.Fprintf(out, " %s |", lists(f, one))
		}
		fmt.Fprintf(out, " %s |\n", text(f.Doc))
	}
}

// target returns a target for links to a field: its path, as operator explain takes it. It is empty for a field that has a target
// already, because its map may have two forms, and for one whose section has this anchor.
func (s *sections) target(f form.Field) string {
	path := s.path(f.Place)
	heads := func(one *section) bool { return anchor(s.heading(one)) == path }
	if s.targets[path] || slices.ContainsFunc(s.all, heads) {
		return ""
	}
	s.targets[path] = true
	return target(path)
}

// path returns the target of the field at a place.
func (s *sections) path(place string) string { return s.within + (form.Field{Place: place}).Path() }

// target returns what links can lead to by a name.
func target(name string) string { return fmt.Sprintf("<a id=%q></a>", name) }

// lists names the lists that have a field.
func lists(f form.Field, of *section) string {
	if !slices.ContainsFunc(of.Fields, func(other form.Field) bool { return len(other.In) > len(f.In) }) {
		return "all"
	}
	return strings.Join(f.In, ", ")
}

// kind describes the type of a field, with links to the sections of its maps.
func (s *sections) kind(f form.Field) string {
	var links []string
	blocks := s.outline.Blocks(f)
	for _, block := range blocks {
		label := text(f.Type)
		if len(blocks) > 1 {
			label = cmp.Or(block.Title, code(block.Place))
		}
		if one := s.written(block); one != nil {
			links = append(links, s.link(label, one))
		}
	}
	if len(links) == 0 || len(blocks) > 1 {
		links = slices.Insert(links, 0, text(f.Type))
	}
	return strings.Join(links, ", ")
}

// byDefault describes the default of a field.
func byDefault(f form.Field) string {
	switch {
	case f.Required:
		return "required"
	case f.Default != "":
		return code(f.Default)
	}
	return ""
}
