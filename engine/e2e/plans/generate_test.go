// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// generator makes random changes of configurations.
type generator struct{ *rand.Rand }

// edit makes one random change in a configuration, and describes it. It returns "" if the configuration has no place for the
// kind of change that was drawn.
func (g generator) edit(root *yaml.Node) string {
	kinds := []func(*yaml.Node) string{g.leaf, g.leaf, g.mark, g.drop, g.add, g.exclude, g.rename, g.dropHandler, g.addHandler, g.value, g.value, g.option, g.option, g.condition, g.transition}
	return kinds[g.IntN(len(kinds))](root)
}

// leaf changes a value in a template.
func (g generator) leaf(root *yaml.Node) string {
	var leaves []place
	for _, e := range entries(root) {
		for _, l := range leavesOf(e.name, templateOf(e.node)) {
			if isFree(l.name) {
				leaves = append(leaves, l)
			}
		}
	}
	l, found := pick(g, leaves)
	if !found {
		return ""
	}
	return l.name + ": " + g.change(l.node)
}

// isFree reports whether a template may have another value at a path: a string only where any string is valid.
func isFree(path string) bool {
	_, inTemplate, _ := strings.Cut(path, "/")
	parts := strings.Split(inTemplate, ".")
	last := parts[len(parts)-1]
	for _, free := range []string{"data", "stringData", "labels", "annotations", "matchLabels", "hard"} {
		if slices.Contains(parts, free) {
			return true
		}
	}
	return slices.Contains([]string{"image", "host", "value", "replicas", "port", "containerPort", "secretName", "averageUtilization", "terminationGracePeriodSeconds", "backoffLimit", "storage"}, last)
}

// change changes a scalar.
func (g generator) change(n *yaml.Node) string {
	before := n.Value
	switch expression, found := strings.CutPrefix(n.Value, "${"); {
	case n.Tag == "!!int":
		var i int
		_, _ = fmt.Sscan(n.Value, &i) // the tag says that it is a number
		n.Value = fmt.Sprint(i + 1)
	case found && strings.HasSuffix(expression, "}") && g.IntN(2) == 0:
		n.SetString("${(" + strings.TrimSuffix(strings.TrimSpace(expression), "}") + ") + 1}")
	default:
		n.SetString(n.Value + "-x")
	}
	return before + " becomes " + n.Value
}

// mark adds a label or an annotation to a template.
func (g generator) mark(root *yaml.Node) string {
	e, found := pick(g, entries(root))
	if !found {
		return ""
	}
	metadata := get(templateOf(e.node), "metadata")
	key := []string{"labels", "annotations"}[g.IntN(2)]
	if metadata == nil || metadata.Kind != yaml.MappingNode {
		return ""
	}
	marks := get(metadata, key)
	if marks == nil {
		marks = parse("{}")
		put(metadata, key, marks)
	}
	if marks.Kind != yaml.MappingNode {
		return ""
	}
	put(marks, "example.com/new", parse("a"))
	return e.name + ": new in " + key
}

// drop drops a template.
func (g generator) drop(root *yaml.Node) string {
	e, found := pick(g, entries(root))
	if !found || len(e.parent.Content) == 2 {
		return ""
	}
	i := slices.Index(e.parent.Content, e.node)
	e.parent.Content = slices.Delete(e.parent.Content, i-1, i+1)
	return e.name + ": dropped"
}

// add adds a template.
func (g generator) add(root *yaml.Node) string {
	e, found := pick(g, entries(root))
	if !found {
		return ""
	}
	put(e.parent, "extra", extra(e.node))
	return e.name + ": a new template beside it"
}

// extra returns a template of a ConfigMap in the namespace of another one.
func extra(beside *yaml.Node) *yaml.Node {
	out := parse(`{apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}-extra"}, data: {a: b}}`)
	if namespace := get(get(templateOf(beside), "metadata"), "namespace"); namespace != nil {
		put(get(out, "metadata"), "namespace", namespace)
	}
	return out
}

// exclude gives a template another condition.
func (g generator) exclude(root *yaml.Node) string {
	e, found := pick(g, entries(root))
	if !found {
		return ""
	}
	condition := []string{"false", "size(self.metadata.name) % 2 == 0", "self.metadata.generation > 1"}[g.IntN(3)]
	put(withOptions(e.node), "includeWhen", parse(fmt.Sprintf("%q", condition)))
	return e.name + ": only when " + condition
}

// withOptions makes an entry of an apply action one with options, and returns it.
func withOptions(entry *yaml.Node) *yaml.Node {
	if get(entry, "template") == nil {
		inline := *entry
		*entry = *parse("{}")
		put(entry, "template", &inline)
	}
	return entry
}

// option gives a template another option.
func (g generator) option(root *yaml.Node) string {
	e, found := pick(g, entries(root))
	if !found {
		return ""
	}
	options := []string{
		"ownership: labelled", "ownership: none", "ownership: owned", "onDelete: orphan", "onDelete: retain", "update: recreate", "update: onDelete",
		"onImmutable: recreate", "drift: strict", "deleteOrder: reverse",
	}
	option := options[g.IntN(len(options))]
	key, value, _ := strings.Cut(option, ": ")
	put(withOptions(e.node), key, parse(value))
	return e.name + ": " + option
}

// condition gives a handler a condition.
func (g generator) condition(root *yaml.Node) string {
	list, found := pick(g, find(root, "handlers"))
	if !found || len(list.node.Content) == 0 {
		return ""
	}
	h := list.node.Content[g.IntN(len(list.node.Content))]
	key := []string{"when", "includeWhen"}[g.IntN(2)]
	condition := []string{"false", "size(self.metadata.name) % 2 == 0", "self.metadata.generation > 1"}[g.IntN(3)]
	put(h, key, parse(fmt.Sprintf("%q", condition)))
	return fmt.Sprintf("handler %s: %s %s", get(h, "id").Value, key, condition)
}

// transition drops a transition of a machine, or adds one from a state to another.
func (g generator) transition(root *yaml.Node) string {
	list, found := pick(g, find(root, "states"))
	if !found {
		return ""
	}
	states := list.node.Content
	from, to := states[g.IntN(len(states))], get(states[g.IntN(len(states))], "name").Value
	ways := get(from, "transitions")
	if ways == nil || ways.Kind != yaml.SequenceNode {
		return ""
	}
	if g.IntN(2) == 0 && len(ways.Content) > 0 {
		i := g.IntN(len(ways.Content))
		ways.Content = slices.Delete(ways.Content, i, i+1)
		return fmt.Sprintf("state %s: transition %d dropped", get(from, "name").Value, i)
	}
	ways.Content = append(ways.Content, parse("{to: "+to+"}"))
	return fmt.Sprintf("state %s: a transition to %s", get(from, "name").Value, to)
}

// rename renames a child.
func (g generator) rename(root *yaml.Node) string {
	e, found := pick(g, entries(root))
	name := get(get(templateOf(e.node), "metadata"), "name")
	if !found || name == nil {
		return ""
	}
	name.SetString(name.Value + "-y")
	return e.name + ": another name"
}

// dropHandler drops a handler.
func (g generator) dropHandler(root *yaml.Node) string {
	list, found := pick(g, find(root, "handlers"))
	if !found || len(list.node.Content) == 0 {
		return ""
	}
	i := g.IntN(len(list.node.Content))
	id := get(list.node.Content[i], "id")
	list.node.Content = slices.Delete(list.node.Content, i, i+1)
	return "handler " + id.Value + ": dropped"
}

// addHandler adds a handler, which writes to the object or makes a child.
func (g generator) addHandler(root *yaml.Node) string {
	list, found := pick(g, find(root, "handlers"))
	if !found {
		return ""
	}
	h := parse(`{id: extra, set: {annotations: {example.com/new: "${self.metadata.name}"}}}`)
	what := "annotation"
	if g.IntN(2) == 0 {
		what = "ConfigMap"
		h = parse(`{id: extra, apply: {}}`)
		beside, _ := pick(g, entries(root))
		put(get(h, "apply"), "extra", extra(beside.node))
	}
	list.node.Content = slices.Insert(list.node.Content, g.IntN(len(list.node.Content)+1), h)
	return "a new handler with a " + what
}

// value changes a value that a handler sets.
func (g generator) value(root *yaml.Node) string {
	var leaves []place
	for _, s := range find(root, "set") {
		leaves = append(leaves, leavesOf("set/", s.node)...)
	}
	l, found := pick(g, leaves)
	if !found {
		return ""
	}
	return l.name + ": " + g.change(l.node)
}

// place is a named node in a tree.
type place struct {
	name         string
	node, parent *yaml.Node
}

func pick(g generator, all []place) (place, bool) {
	if len(all) == 0 {
		return place{}, false
	}
	return all[g.IntN(len(all))], true
}

// entries returns the entries of all apply actions.
func entries(root *yaml.Node) (out []place) {
	for _, a := range find(root, "apply") {
		for i := 1; a.node.Kind == yaml.MappingNode && i < len(a.node.Content); i += 2 {
			if templateOf(a.node.Content[i]) != nil {
				out = append(out, place{a.node.Content[i-1].Value + "/", a.node.Content[i], a.node})
			}
		}
	}
	return out
}

// templateOf returns the template of an entry of an apply action, or nil.
func templateOf(entry *yaml.Node) *yaml.Node {
	if t := get(entry, "template"); t != nil {
		return t
	}
	if get(entry, "apiVersion") == nil {
		return nil
	}
	return entry
}

// find returns the values of a key anywhere in a tree.
func find(n *yaml.Node, key string) (out []place) {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			continue
		}
		if n.Kind == yaml.MappingNode && n.Content[i-1].Value == key {
			out = append(out, place{key, c, n})
		}
		out = append(out, find(c, key)...)
	}
	return out
}

// leavesOf returns the scalars of a tree, but for those that say what and where an object is.
func leavesOf(path string, n *yaml.Node) (out []place) {
	if n == nil {
		return nil
	}
	switch n.Kind {
	case yaml.ScalarNode:
		return []place{{path, n, nil}}
	case yaml.SequenceNode:
		for _, c := range n.Content {
			out = append(out, leavesOf(path, c)...)
		}
	case yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			out = append(out, leavesOf(strings.TrimPrefix(path+"."+n.Content[i].Value, "."), n.Content[i+1])...)
		}
	}
	return out
}

// get returns a value of a map, or nil.
func get(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// put sets a value of a map.
func put(n *yaml.Node, key string, value *yaml.Node) {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content[i+1] = value
			return
		}
	}
	n.Content = append(n.Content, parse(key), value)
}

// parse reads a text of this file.
func parse(text string) *yaml.Node {
	var out yaml.Node
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		panic(err)
	}
	return out.Content[0]
}
