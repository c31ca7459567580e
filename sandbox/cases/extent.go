// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// offset is where a node begins in the text.
func (u *updater) offset(n *yaml.Node) int {
	at := u.lines[n.Line-1]
	for range n.Column - 1 {
		_, width := utf8.DecodeRuneInString(u.text[at:])
		at += width
	}
	return at
}

// end is where a node ends in the text.
func (u *updater) end(n *yaml.Node) (int, error) {
	from := u.offset(n)
	switch {
	case n.Kind == yaml.AliasNode, n.Anchor != "", n.Style&yaml.TaggedStyle != 0:
		return 0, errFixed
	case n.Kind == yaml.ScalarNode:
		return u.endOfScalar(n, from)
	}
	end := from
	if !isBlock(n) {
		end++
	}
	if len(n.Content) > 0 {
		var err error
		if end, err = u.end(n.Content[len(n.Content)-1]); err != nil {
			return 0, err
		}
	}
	if isBlock(n) {
		return end, nil
	}
	return u.closing(end)
}

// closing is where the bracket ends that comes after a place.
func (u *updater) closing(at int) (int, error) {
	for at < len(u.text) {
		switch u.text[at] {
		case ' ', '\t', '\r', '\n', ',':
			at++
		case '#':
			at += strings.IndexByte(u.text[at:]+"\n", '\n')
		case ']', '}':
			return at + 1, nil
		default:
			return 0, errFixed
		}
	}
	return 0, errFixed
}

func (u *updater) endOfScalar(n *yaml.Node, from int) (int, error) {
	switch {
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0, n.Value == "" && n.Style == 0:
		return 0, errFixed
	case n.Style&yaml.DoubleQuotedStyle != 0:
		for i := from + 1; i < len(u.text); i++ {
			switch u.text[i] {
			case '\\':
				i++
			case '"':
				return i + 1, nil
			}
		}
	case n.Style&yaml.SingleQuotedStyle != 0:
		for i := from + 1; i < len(u.text); i++ {
			if u.text[i] != '\'' {
				continue
			}
			if i+1 == len(u.text) || u.text[i+1] != '\'' {
				return i + 1, nil
			}
			i++
		}
	case strings.HasPrefix(u.text[from:], n.Value):
		return from + len(n.Value), nil
	}
	return 0, errFixed
}

// restyle gives a new value the look of the one that it replaces.
func restyle(n, like *yaml.Node) {
	n.Style = 0
	switch {
	case n.Kind != yaml.ScalarNode:
		for _, c := range n.Content {
			restyle(c, &yaml.Node{})
		}
	case strings.Contains(n.Value, "\n"):
		n.Style = yaml.DoubleQuotedStyle
	case n.Tag == "!!bool" && like.Tag == "!!bool" && like.Value != strings.ToLower(like.Value):
		n.Value = strings.ToUpper(n.Value[:1]) + n.Value[1:] // as the statuses of conditions are written
	case n.Tag == "!!str" && like.Kind == yaml.ScalarNode:
		n.Style = like.Style & (yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle)
	}
}

// inline is a value in one line, so that it may stand in brackets.
func inline(n *yaml.Node) (string, error) {
	data, err := yaml.Marshal(&yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle, Content: []*yaml.Node{n}})
	text := strings.TrimSpace(string(data))
	return strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"), err
}

// block is a value in lines of its own, all but the first one indented.
func block(n *yaml.Node, indent int) (string, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(n); err != nil {
		return "", err
	}
	return strings.ReplaceAll(strings.TrimSpace(out.String()), "\n", "\n"+strings.Repeat(" ", indent)), nil
}
