// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl/form"
)

// maxDepth is how deep a document may be nested.
const maxDepth = 100

// expander replaces aliases by their values, and merge keys by the entries that they add. The result shares
// repeated parts, so it is not larger than the document. Its full size is kept within the limits of [Size], so that
// it can be walked like a tree.
type expander struct {
	source *Text
	done   map[*yaml.Node]expansion
	copied int
	depth  int
	faults Faults
}

// expansion is an expanded node; the node is nil while the expansion is in progress.
type expansion struct {
	node  *yaml.Node
	size  Size
	depth int
}

// Expand returns the document without aliases and merge keys; nil if there are faults. Whole is the size of the
// configuration so far, and is increased.
func (s *Text) Expand(root *yaml.Node, whole *Size) (*yaml.Node, Faults) {
	e := &expander{source: s, done: map[*yaml.Node]expansion{}}
	out := e.node(root, "")
	*whole = whole.plus(e.done[root].size)
	if e.copied > maxValues {
		whole.values = e.copied
	}
	if excess := whole.Excess(); excess != "" {
		e.fault(root, "", "the configuration holds more than %s, counting what aliases repeat", excess)
	}
	if e.done[root].depth > maxDepth {
		e.fault(root, "", "the document is nested more than %d deep", maxDepth)
	}
	if len(e.faults) > 0 {
		return nil, e.faults
	}
	return out, nil
}

func (e *expander) node(n *yaml.Node, p form.Path) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		if known, begun := e.done[n.Alias]; begun && known.node == nil {
			e.fault(n, p, "the anchor %s is used within itself", form.Quoted(n.Value))
			return n
		}
		return e.node(n.Alias, p)
	}
	if known, begun := e.done[n]; begun {
		return known.node
	}
	e.done[n] = expansion{}
	e.tag(n, p)
	out := *n
	e.depth++
	switch {
	case e.depth > maxDepth:
		out.Content = nil // the expansion in progress reports it
	case n.Kind == yaml.MappingNode:
		out.Content = e.entries(n, p)
	case n.Kind == yaml.SequenceNode:
		out.Content = make([]*yaml.Node, len(n.Content))
		for i, element := range n.Content {
			out.Content[i] = e.node(element, p.Index(i))
		}
	}
	e.depth--
	e.done[n] = measured(&out, e.done)
	e.done[&out] = e.done[n]
	return &out
}

func measured(n *yaml.Node, done map[*yaml.Node]expansion) expansion {
	out := expansion{node: n, size: sizeOf(n)}
	for _, child := range n.Content {
		out.size = out.size.plus(done[child].size)
		out.depth = max(out.depth, done[child].depth)
	}
	out.depth++
	return out
}

// entries returns a map's own entries, and then the merged entries that it does not have itself.
func (e *expander) entries(n *yaml.Node, p form.Path) []*yaml.Node {
	var own, merged []*yaml.Node
	has := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := e.node(n.Content[i], p)
		at := p.Key(key.Value)
		value := e.node(n.Content[i+1], at)
		if key.Tag == "!!merge" {
			merged = append(merged, e.merged(value, at)...)
			continue
		}
		has[key.Value] = true
		own = append(own, key, value)
	}
	for i := 0; i < len(merged); i += 2 {
		if key := merged[i]; !has[key.Value] {
			has[key.Value] = true
			own = append(own, key, merged[i+1])
		}
	}
	return own
}

// merged returns the entries of the value of a merge key, those with precedence first.
func (e *expander) merged(n *yaml.Node, p form.Path) []*yaml.Node {
	sources := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		sources = n.Content
	}
	var out []*yaml.Node
	for _, source := range sources {
		if source.Kind != yaml.MappingNode {
			e.fault(source, p, "want a map to merge, or a list of maps, found %s", form.Found(source))
			continue
		}
		if e.copied += len(source.Content); e.copied > maxValues {
			return nil
		}
		out = append(out, source.Content...)
	}
	return out
}

var kindTags = map[yaml.Kind][]string{
	yaml.MappingNode:  {"!!map"},
	yaml.SequenceNode: {"!!seq"},
	yaml.ScalarNode:   {"!!str", "!!int", "!!bool", "!!float", "!!null", "!!timestamp"},
}

// tag checks an explicit tag.
func (e *expander) tag(n *yaml.Node, p form.Path) {
	if n.Style&yaml.TaggedStyle == 0 {
		return
	}
	for _, known := range kindTags[n.Kind] {
		if n.ShortTag() != known {
			continue
		}
		var value any
		if n.Kind == yaml.ScalarNode && n.Decode(&value) != nil {
			e.fault(n, p, "%s is not what its tag %s says", form.Quoted(n.Value), known)
		}
		return
	}
	cure := ""
	if !strings.HasPrefix(n.ShortTag(), "!!") { // a text begins with one sign, a tag of YAML with two
		cure = leading(n.ShortTag())
	}
	e.fault(n, p, "the tag %s is not known here%s", form.Quoted(n.ShortTag()), cure)
}

func (e *expander) fault(n *yaml.Node, p form.Path, format string, args ...any) {
	e.faults = append(e.faults, e.source.Fault(n, p, 0, 0, fmt.Sprintf(format, args...)))
}
