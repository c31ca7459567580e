// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"strings"
)

// Dot writes drawings for Graphviz: one graph each.
func Dot(drawings []Drawing) string {
	var out strings.Builder
	for i, d := range drawings {
		if i > 0 {
			out.WriteString("\n")
		}
		d.dot(&out)
	}
	return out.String()
}

func (d Drawing) dot(out *strings.Builder) {
	fmt.Fprintf(out, "digraph %s {\n", quoted(d.Title))
	fmt.Fprintf(out, "    graph [label=%s, labelloc=t, rankdir=%s, fontname=\"Helvetica\", nodesep=0.4, ranksep=0.5];\n",
		quoted(d.Title), map[bool]string{true: "LR", false: "TB"}[d.Across])
	out.WriteString("    node [shape=box, fontname=\"Helvetica\", fontsize=11];\n    edge [fontname=\"Helvetica\", fontsize=10];\n")
	for i, p := range d.Parts {
		indent := "    "
		if p.Title != "" {
			fmt.Fprintf(out, "    subgraph cluster_%d {\n        label=%s;\n", i+1, quoted(p.Title))
			indent += indent
		}
		for _, n := range p.Nodes {
			if n.Shape == Start {
				fmt.Fprintf(out, "%s%s [label=\"\", xlabel=%s%s];\n", indent, n.ID, quoted(n.Name), dotLooks[Start])
				continue
			}
			fmt.Fprintf(out, "%s%s [label=%s%s];\n", indent, n.ID, quoted(append([]string{n.Name}, n.Lines...)...), dotLooks[n.Shape])
		}
		for _, e := range p.Edges {
			fmt.Fprintf(out, "%s%s -> %s [label=%s%s];\n", indent, e.From, e.To, quoted(e.Label...), dotStyles[e.Style])
		}
		if p.Title != "" {
			out.WriteString("    }\n")
		}
	}
	out.WriteString("}\n")
}

// dotLooks are the attributes of shapes that differ from a box.
var dotLooks = map[Shape]string{
	Resource:     `, shape=box3d, color="#1f6feb"`,
	Handler:      `, color="#2da44e"`,
	Daemon:       `, style=rounded, color="#2da44e"`,
	Schedule:     `, shape=hexagon, color="#2da44e"`,
	StateMachine: `, shape=component, color="#2da44e"`,
	Activity:     `, style=rounded, color="#2da44e"`,
	Child:        `, style=rounded, color="#bf8700"`,
	Owned:        `, style=rounded, color="#bf8700"`,
	Related:      `, shape=parallelogram, color="#8250df"`,
	Index:        `, shape=cylinder, color="#8250df"`,
	Indexed:      `, shape=box3d, color="#8250df"`,
	Start:        `, shape=point, width=0.15`,
	State:        `, style=rounded`,
	Terminal:     `, peripheries=2, color="#2da44e"`,
	Failed:       `, peripheries=2, color="#cf222e"`,
	Former:       `, style=dashed, color="#808080"`,
}

var dotStyles = map[Style]string{
	Solid: "", Dashed: ", style=dashed", Dotted: ", style=dotted, arrowhead=odot", Thick: ", style=bold, penwidth=2",
}

// dotText escapes characters with a meaning in strings of Graphviz, which also have HTML entities.
var dotText = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "&", "&amp;")

// quoted returns lines as one string.
func quoted(lines ...string) string {
	var out []string
	for _, line := range lines {
		out = append(out, dotText.Replace(line))
	}
	return `"` + strings.Join(out, `\n`) + `"`
}
