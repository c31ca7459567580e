// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl/form"
	text "github.com/handwerk-dev/handwerk/dsl/source"
)

// Change is a value of a file with cases that [Update] has changed.
type Change struct {
	File string
	Line int
	// At is the path of the value in the file; From and To are the value before and after, as they stand in the file.
	// From is empty where there was none.
	At       form.Path
	From, To string
}

// String is the change for people.
func (c Change) String() string {
	if c.From == "" {
		return fmt.Sprintf("%s:%d: %s is new: %s", c.File, c.Line, c.At, c.To)
	}
	return fmt.Sprintf("%s:%d: %s was %s, is now %s", c.File, c.Line, c.At, strings.Join(strings.Fields(c.From), " "), c.To)
}

// Update rewrites the expectations of a file so that they are what was found. Nothing else in the file changes. It
// returns the changes in the order of the file, and the failures that it cannot mend so: those of expressions, those
// that are of no expectation, and those of values that stand in an anchor, in a text block or where an alias is.
func Update(name string, failures []Failure) (changes []Change, left []Failure, err error) {
	data, err := text.ReadFile(name)
	if err != nil {
		return nil, nil, err
	}
	u := &updater{name: name, text: string(data)}
	if err := yaml.Unmarshal(data, &u.root); err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", name, err)
	}
	u.lines = append(u.lines, 0)
	for i, c := range u.text {
		if c == '\n' {
			u.lines = append(u.lines, i+1)
		}
	}
	for _, f := range failures {
		if !u.mend(f) {
			left = append(left, f)
		}
	}
	if len(u.splices) == 0 {
		return nil, left, nil
	}
	changes = u.write()
	if _, err := parse(name, []byte(u.text)); err != nil {
		return nil, nil, fmt.Errorf("updating %s: the file would not be read any more: %w", name, err)
	}
	if err := os.WriteFile(name, []byte(u.text), 0o600); err != nil { // a file that is there keeps its mode
		return nil, nil, err
	}
	return changes, left, nil
}

// updater rewrites the text of a file.
type updater struct {
	name, text string
	root       yaml.Node
	// lines are where the lines begin.
	lines   []int
	splices []splice
}

// splice replaces a part of the text.
type splice struct {
	Change

	from, to int
	// written is the text in the place of the part, To with what surrounds it.
	written string
}

// mend notes what has to change for a failure, all of it or nothing.
func (u *updater) mend(f Failure) bool {
	var all []splice
	for _, e := range f.Edits {
		s, err := u.splice(e)
		if err != nil {
			return false
		}
		all = append(all, s)
	}
	u.splices = append(u.splices, all...)
	return len(all) > 0
}

// write replaces the parts.
func (u *updater) write() (out []Change) {
	slices.SortFunc(u.splices, func(a, b splice) int { return b.from - a.from })
	for _, s := range u.splices {
		u.text = u.text[:s.from] + s.written + u.text[s.to:]
		out = append(out, s.Change)
	}
	slices.Reverse(out)
	return out
}

// errFixed: the value cannot be rewritten alone.
var errFixed = errors.New("another place has this value, too, or its text has several lines")

// splice finds the place of a change in the text.
func (u *updater) splice(e Edit) (splice, error) {
	n, flow, missing, err := u.find(e.At)
	if err != nil {
		return splice{}, err
	}
	end, err := u.end(n)
	if err != nil {
		return splice{}, err
	}
	var value yaml.Node
	if err := yaml.Unmarshal(e.Value, &value); err != nil {
		return splice{}, err
	}
	out := splice{Change: Change{File: u.name, Line: n.Line, At: e.At}, from: u.offset(n), to: end}
	fresh := value.Content[0]
	if missing != "" {
		fresh.Style = 0
		out.To, err = inline(fresh)
		return u.insertion(out, n, flow, missing+": "+out.To), err
	}
	out.From = u.text[out.from:out.to]
	restyle(fresh, n)
	if out.To, err = inline(fresh); err != nil {
		return out, err
	}
	out.written = out.To
	if isBlock(n) && len(fresh.Content) > 0 && !flow {
		out.written, err = block(fresh, n.Column-1)
	}
	return out, err
}

// insertion adds an entry at the end of a map.
func (u *updater) insertion(s splice, n *yaml.Node, flow bool, entry string) splice {
	s.from = s.to
	switch {
	case flow || !isBlock(n):
		s.from-- // the bracket
		s.to = s.from
		s.written = entry
		if len(n.Content) > 0 {
			s.written = ", " + entry
		}
	default:
		if rest := strings.IndexByte(u.text[s.to:], '\n'); rest >= 0 {
			s.from += rest
		} else {
			s.from = len(u.text)
		}
		s.to = s.from
		s.written = "\n" + strings.Repeat(" ", n.Column-1) + entry
	}
	return s
}

// find returns the value at a path, and whether it stands in brackets. If a map lacks the last key of the path, it
// returns the map and the key.
func (u *updater) find(at form.Path) (n *yaml.Node, flow bool, missing string, err error) {
	n = u.root.Content[0]
	steps := at.Steps()
	for i, step := range steps {
		next := child(n, step)
		if next == nil && i == len(steps)-1 && n.Kind == yaml.MappingNode {
			return n, flow, step, nil
		}
		if next == nil || next.Kind == yaml.AliasNode || next.Anchor != "" {
			return nil, false, "", errFixed
		}
		flow = flow || !isBlock(n)
		n = next
	}
	return n, flow, "", nil
}

// child returns the entry of a map or the element of a list, or nil.
func child(n *yaml.Node, step string) *yaml.Node {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			if n.Content[i].Value == step {
				return n.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i < len(n.Content) {
			return n.Content[i]
		}
	}
	return nil
}

// isBlock reports whether a node is a map or a list without brackets.
func isBlock(n *yaml.Node) bool { return n.Kind != yaml.ScalarNode && n.Style&yaml.FlowStyle == 0 }
