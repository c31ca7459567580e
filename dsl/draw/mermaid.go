// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"strings"
)

// Mermaid writes drawings for Markdown: for each its title, and a block that GitHub, GitLab and many others show as
// a picture. Colors are those of the reader's theme, except for the borders of boxes.
func Mermaid(drawings []Drawing) string {
	var out strings.Builder
	for i, d := range drawings {
		if i > 0 {
			out.WriteString("\n")
		}
		fmt.Fprintf(&out, "**%s**\n\n```mermaid\n", markdown.Replace(d.Title))
		d.mermaid(&out)
		out.WriteString("```\n")
	}
	return out.String()
}

// mermaidWidth is the width in pixels from which Mermaid breaks lines itself. Boxes are narrower.
const mermaidWidth = 400

// mermaid writes a flowchart, also for a machine: Mermaid's state diagrams have no dashed lines.
func (d Drawing) mermaid(out *strings.Builder) {
	direction := map[bool]string{true: "LR", false: "TB"}[d.Across]
	fmt.Fprintf(out, "%%%%{init: {\"flowchart\": {\"wrappingWidth\": %d}}}%%%%\nflowchart %s\n", mermaidWidth, direction)
	for i, p := range d.Parts {
		indent := "    "
		if p.Title != "" {
			fmt.Fprintf(out, "    subgraph part_%d[\"%s\"]\n        direction %s\n", i+1, escaped(p.Title), direction)
			indent += indent
		}
		for _, n := range p.Nodes {
			look := mermaidLooks[n.Shape]
			fmt.Fprintf(out, "%s%s%s\"%s\"%s%s\n", indent, n.ID, look.open, n.text(), look.close, class(look))
		}
		for _, e := range p.Edges {
			fmt.Fprintf(out, "%s%s %s%s %s\n", indent, e.From, mermaidArrows[e.Style], e.text(), e.To)
		}
		if p.Title != "" {
			out.WriteString("    end\n")
		}
	}
	for _, c := range mermaidClasses {
		if d.has(c.name) {
			fmt.Fprintf(out, "    classDef %s %s\n", c.name, c.style)
		}
	}
}

// text returns the text of the box.
func (n Node) text() string {
	lines := []string{escaped(n.Name)}
	for _, line := range n.Lines {
		lines = append(lines, escaped(line))
	}
	return strings.Join(lines, "<br/>")
}

// text returns the edge's label for its place behind the arrow.
func (e Edge) text() string {
	if len(e.Label) == 0 {
		return ""
	}
	var lines []string
	for _, line := range e.Label {
		lines = append(lines, escaped(line))
	}
	return "|\"" + strings.Join(lines, "<br/>") + "\"|"
}

// mermaidLook is how Mermaid draws a shape.
type mermaidLook struct{ open, close, class string }

var mermaidLooks = map[Shape]mermaidLook{
	Resource:     {"[[", "]]", "resource"},
	Handler:      {"[", "]", "handler"},
	Daemon:       {"([", "])", "handler"},
	Schedule:     {"{{", "}}", "handler"},
	StateMachine: {"[[", "]]", "handler"},
	Activity:     {"([", "])", "handler"},
	Child:        {"(", ")", "child"},
	Owned:        {"(", ")", "child"},
	Related:      {"[/", "/]", "related"},
	Index:        {"[(", ")]", "related"},
	Indexed:      {"[[", "]]", "related"},
	Start:        {"((", "))", "start"},
	State:        {"(", ")", ""},
	Terminal:     {"([", "])", "terminal"},
	Failed:       {"([", "])", "failed"},
	Former:       {"[", "]", "former"},
}

var mermaidArrows = map[Style]string{Solid: "-->", Dashed: "-.->", Dotted: "-.-o", Thick: "==>"}

// mermaidClasses are the styles of classes. Their colors suit light and dark backgrounds.
var mermaidClasses = []struct{ name, style string }{
	{"resource", "stroke:#1f6feb,stroke-width:2px"},
	{"handler", "stroke:#2da44e,stroke-width:2px"},
	{"child", "stroke:#bf8700"},
	{"related", "stroke:#8250df"},
	{"start", "stroke:#808080"},
	{"terminal", "stroke:#2da44e,stroke-width:3px"},
	{"failed", "stroke:#cf222e,stroke-width:3px"},
	{"former", "stroke:#808080,stroke-dasharray:4 3"},
}

// class is the mark of a node's class.
func class(look mermaidLook) string {
	if look.class == "" {
		return ""
	}
	return ":::" + look.class
}

// has reports whether the drawing has a node of a class.
func (d Drawing) has(class string) bool {
	for _, p := range d.Parts {
		for _, n := range p.Nodes {
			if mermaidLooks[n.Shape].class == class {
				return true
			}
		}
	}
	return false
}

// mermaidText escapes characters with a meaning in Mermaid. Some sequences still have a meaning then (a line break,
// a formula, an icon); a zero-width space breaks them. A colon has a meaning unless a space follows it.
var mermaidText = strings.NewReplacer(
	"#", "#35;", `"`, "#quot;", "&", "#amp;", "<", "#lt;", ">", "#gt;", "`", "#96;", `\n`, "#92;#8203;n", `\`, "#92;", "*", "#42;",
	"%", "#37;", "|", "#124;", "~", "#126;", ";", "#59;",
	"$$", "$#8203;$", ": ", ": ", ":fa-", "#58;#8203;fa-", ":", "#58;",
)

// escaped is text for a label of Mermaid. It is never empty, which Mermaid cannot read.
func escaped(text string) string {
	if text == "" {
		return " "
	}
	return mermaidText.Replace(text)
}

// markdown is for text in Markdown.
var markdown = strings.NewReplacer(
	`\`, `\\`, "*", `\*`, "_", `\_`, "`", "\\`", "<", "&lt;", "&", "&amp;", "[", `\[`, "]", `\]`, "#", `\#`, "|", `\|`, "~", `\~`,
)
