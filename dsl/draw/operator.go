// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// All draws an operator and then each of its machines.
func All(op *dsl.Operator) []Drawing {
	out := []Drawing{Operator(op)}
	for _, r := range op.Resources() {
		for _, h := range r.Machines() {
			out = append(out, ofMachine(r, h))
		}
	}
	return out
}

// Operator draws an operator: the resources that it watches, and what its handlers look at, make and wait for.
// Edges lead from the one that acts to the one that is acted on.
func Operator(op *dsl.Operator) Drawing {
	b := &builder{op: op, ids: ids{}, indexes: map[string]string{}, watched: map[*dsl.Resource]string{}}
	for _, x := range op.Indexes() {
		only := filters(x.LabelSelector, x.FieldSelector, x.Labels, x.Annotations, x.When)
		b.indexes[x.Name] = b.node(Index, []string{"index"}, x.Name, "index over "+groupResource(x.Resource), only)
	}
	for _, r := range op.Resources() {
		b.resource(r)
	}
	b.fill()
	out := Drawing{Title: short("operator "+op.Name, titleWidth), Across: true, Parts: []Part{b.part}}
	if process := activities(op, b.ids); len(process.Nodes) > 0 {
		out.Parts = append(out.Parts, process)
	}
	return out
}

// builder collects the nodes and edges of an operator.
type builder struct {
	op   *dsl.Operator
	part Part
	ids  ids
	// indexes are the ids of indexes by name, watched those of resources.
	indexes map[string]string
	watched map[*dsl.Resource]string
}

// node adds a node with the given texts as lines; long texts are broken. Its id is made from the words and its
// name.
func (b *builder) node(is Shape, words []string, name string, texts ...string) (id string) {
	id = b.ids.of(append(words, name)...)
	b.part.Nodes = append(b.part.Nodes, Node{ID: id, Shape: is, Name: short(name, nameWidth), Lines: lines(texts)})
	return id
}

// edge adds an edge once, if both nodes exist: a faulty operator may name missing ones.
func (b *builder) edge(from, to string, style Style, label string) {
	same := func(other Edge) bool { return other.From == from && other.To == to && other.Style == style }
	if from == "" || to == "" || slices.ContainsFunc(b.part.Edges, same) {
		return
	}
	b.part.Edges = append(b.part.Edges, Edge{From: from, To: to, Style: style, Label: wrapped(label, labelWidth, labelLines)})
}

// lines breaks texts into the lines of a box.
func lines(texts []string) (out []string) {
	for _, text := range texts {
		out = append(out, wrapped(text, boxWidth, boxLines)...)
	}
	return out
}

// resource adds a resource with all that belongs to it.
func (b *builder) resource(r *dsl.Resource) {
	resync := ""
	if r.Resync > 0 {
		resync = "resync every " + plain.Period(r.Resync)
	}
	id := b.node(Resource, []string{"resource"}, r.Name.Resource, version(r.Name), filters(r.LabelSelector, r.FieldSelector, nil, nil, nil), resync)
	b.watched[r] = id
	for _, h := range r.Admissions() {
		b.edge(b.rule(r, h), id, Dotted, operations(h.Admission))
	}
	family := &relatives{builder: b, of: r, id: id, handlers: map[string]string{}, children: map[string]string{}, related: map[string]string{}}
	for _, h := range r.Handlers() {
		handler := family.handler(h)
		for _, earlier := range h.After {
			b.edge(handler, family.handlers[earlier], Dashed, "after")
		}
	}
	family.makes()
	family.owns()
	family.relations()
	for _, h := range r.Handlers() {
		family.reads(h)
	}
}

// rule adds a rule about requests.
func (b *builder) rule(r *dsl.Resource, h *dsl.Handler) string {
	word, by := "validate", "policy"
	if h.Admission.Mutates {
		word = "mutate"
	}
	if h.Admission.Hooked() {
		by = "webhook"
	}
	return b.node(Handler, []string{word, r.Name.Resource}, h.ID, word+", by "+by, filters("", "", h.Labels, h.Annotations, h.When))
}

// operations names the operations that a rule is about, as in create, update.
func operations(a *dsl.Admission) string {
	var out []string
	for _, one := range a.Operations {
		out = append(out, strings.ToLower(string(one)))
	}
	return strings.Join(out, ", ")
}

// fill adds edges from resources to the indexes over them.
func (b *builder) fill() {
	others := map[string]string{}
	for _, x := range b.op.Indexes() {
		from := ""
		for _, r := range b.op.Resources() {
			if from == "" && r.Name.Objects() == x.Resource.Objects() {
				from = b.watched[r]
			}
		}
		if name := x.Resource.String(); from == "" {
			if others[name] == "" {
				others[name] = b.node(Indexed, []string{"indexed"}, x.Resource.Resource, version(x.Resource))
			}
			from = others[name]
		}
		b.edge(from, b.indexes[x.Name], Solid, "fills")
	}
}

// relatives are a resource and the ids of its handlers, children and relations, by name.
type relatives struct {
	*builder
	of                          *dsl.Resource
	id                          string
	handlers, children, related map[string]string
}

// words returns the beginning of ids that belong to the resource.
func (f *relatives) words(word string) []string { return []string{word, f.of.Name.Resource} }

// handler adds a handler.
func (f *relatives) handler(h *dsl.Handler) string {
	is, word := Handler, "handler"
	switch {
	case h.ResourceWide:
		is, word = Schedule, "schedule"
	case h.Daemon != nil:
		is, word = Daemon, "daemon"
	case h.Machine != nil:
		is, word = StateMachine, "machine"
	}
	id := f.node(is, f.words(word), h.ID, facts(h)...)
	f.handlers[h.ID] = id
	f.edge(f.id, id, Solid, "")
	return id
}

// maker returns the handler that makes children under a name: its own id, or an id, a dot and a step. Without such
// a handler it returns the resource.
func (f *relatives) maker(name string) string {
	for _, h := range f.of.Handlers() {
		if name != "" && (h.ID == name || strings.HasPrefix(name, h.ID+".")) {
			return f.handlers[h.ID]
		}
	}
	return f.id
}

// makes adds the named children, and their dependencies.
func (f *relatives) makes() {
	for _, c := range f.of.Makes {
		kind := "its kind is worked out"
		if !c.Kind.Empty() {
			kind = c.Kind.GroupVersion().String() + " " + c.Kind.Kind
		}
		several := ""
		if c.List {
			several = "one for each element"
		}
		id := f.node(Child, f.words("child"), c.Name, kind, several)
		f.children[c.Name] = id
		f.edge(f.maker(c.Maker), id, Solid, "")
	}
	for _, c := range f.of.Makes {
		for _, needed := range c.Needs {
			f.edge(f.children[c.Name], f.children[needed], Dashed, "needs")
		}
	}
}

// owns adds kinds of children without a named child.
func (f *relatives) owns() {
	for name, kind := range f.of.Owned() {
		named := func(c shape.NamedChild) bool {
			return !kind.Empty() && c.Kind.GroupKind() == kind.GroupKind()
		}
		if slices.ContainsFunc(f.of.Makes, named) {
			continue
		}
		f.edge(f.id, f.node(Owned, f.words("owned"), name.Resource, version(name)), Solid, "owns")
	}
}

// relations adds related objects.
func (f *relatives) relations() {
	for _, with := range f.of.Relations() {
		what := groupResource(with.Resource)
		if with.One {
			what = "one of " + what
		}
		f.related[with.Name] = f.node(Related, f.words("related"), with.Name, what, filters(with.LabelSelector, "", nil, nil, nil))
	}
}

// reads adds edges to what a handler looks at besides its object, except its own children.
func (f *relatives) reads(h *dsl.Handler) {
	id := f.handlers[h.ID]
	for _, c := range f.of.Makes {
		if read(h.Known.Reads.ChildNames, c.Name) && f.maker(c.Maker) != id {
			f.edge(id, f.children[c.Name], Dotted, "reads")
		}
	}
	for _, outcome := range h.Known.Reads.Outcomes {
		if len(outcome) > 0 {
			f.edge(id, f.handlers[outcome[0]], Dotted, "reads")
		}
	}
	known := h.Known.Reads.Only || h.Known.Reads.Related
	for _, with := range f.of.Relations() {
		if read(h.Known.Reads.RelatedNames, with.Name) || !known && h.On(dsl.RelatedChange) { // Go code may read any
			f.edge(id, f.related[with.Name], Dotted, "reads")
		}
	}
	for _, x := range f.op.Indexes() {
		if read(h.Known.Reads.Indexes, x.Name) {
			f.edge(id, f.indexes[x.Name], Dotted, "reads")
		}
	}
}

// read reports whether the names include a name.
func read(names []string, name string) bool {
	return slices.Contains(names, name) || slices.Contains(names, "*")
}
