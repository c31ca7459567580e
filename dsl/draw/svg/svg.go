// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package svg makes pictures of drawings, without any other program. It is pure, and the same drawings always give
// the same picture.
package svg

import (
	"fmt"
	"html"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl/draw"
	"github.com/handwerk-dev/handwerk/dsl/draw/layout"
)

// Empty space, in tenths of a pixel.
const (
	margin   = 240
	partPad  = 200 // around a part with a frame
	titleGap = 360 // for a title, with what is free below it
	between  = 400
)

// Render returns one picture of the drawings, each with a legend. They are in rows: one is beside the one before it where the
// widest leaves room for both. Its colors follow the reader's, light or dark, and it brings its own background.
func Render(drawings []draw.Drawing) string {
	pictures, sizes, widest := make([]picture, len(drawings)), make([]layout.Size, len(drawings)), 0
	for i, d := range drawings {
		sizes[i] = pictures[i].drawing(d)
		widest = max(widest, sizes[i].W)
	}
	var titles []string
	var body strings.Builder
	at, row := layout.Point{X: margin, Y: margin}, 0
	for i, size := range sizes {
		if at.X > margin && at.X+size.W > margin+widest {
			at, row = layout.Point{X: margin, Y: at.Y + row + between}, 0
		}
		p := &pictures[i]
		fmt.Fprintf(&body, `<g transform="translate(%s %s)">`+"\n%s%s%s</g>\n", px(at.X), px(at.Y), p.frames.String(), p.edges.String(), p.boxes.String())
		titles = append(titles, drawings[i].Title)
		at.X, row = at.X+size.W+between, max(row, size.H)
	}
	return whole(titles, body.String(), layout.Size{W: widest + 2*margin, H: at.Y + row + margin})
}

// picture is a picture of one drawing that is being made. Edges lie below boxes and labels.
type picture struct{ frames, edges, boxes strings.Builder }

// whole returns a picture with its background.
func whole(titles []string, body string, size layout.Size) string {
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" class="handwerk" role="img" width="%s" height="%s" viewBox="0 0 %s %s">`+"\n",
		px(size.W), px(size.H), px(size.W), px(size.H))
	fmt.Fprintf(&out, "<title>%s</title>\n<style>%s</style>\n", html.EscapeString(strings.Join(titles, "; ")), style)
	fmt.Fprintf(&out, `<rect class="page" width="%s" height="%s"/>`+"\n", px(size.W), px(size.H))
	out.WriteString(body + "</svg>\n")
	return out.String()
}

// drawing adds a drawing with its legend and returns its size. Its parts are below each other if edges lead across, and beside
// each other if they lead down.
func (p *picture) drawing(d draw.Drawing) layout.Size {
	p.text(&p.frames, "title", 0, 160, d.Title, "start")
	size := layout.Size{W: bold(d.Title, titleSize), H: titleGap}
	next := layout.Point{Y: titleGap}
	for _, part := range d.Parts {
		used := p.part(part, d.Across, next)
		size.W, size.H = max(size.W, next.X+used.W), max(size.H, next.Y+used.H)
		if d.Across {
			next.Y += used.H + between
		} else {
			next.X += used.W + between
		}
	}
	legend := p.legend(d, layout.Point{Y: size.H}, size.W)
	return layout.Size{W: max(size.W, legend.W), H: size.H + legend.H}
}

// part adds a part, with a frame if it has a title, and returns its size.
func (p *picture) part(part draw.Part, across bool, at layout.Point) layout.Size {
	g, number := layout.Graph{Across: across}, map[string]int{}
	for i, n := range part.Nodes {
		number[n.ID] = i
		g.Boxes = append(g.Boxes, boxSize(n))
		if n.Shape == draw.Handler { // handlers run in the order of the file
			g.Ordered = append(g.Ordered, i)
		}
	}
	for _, e := range part.Edges {
		g.Edges = append(g.Edges, layout.Edge{From: number[e.From], To: number[e.To], Label: labelSize(e)})
	}
	l := layout.Arrange(g)
	size, from := l.Size, at
	if part.Title != "" {
		size = layout.Size{W: max(l.W, bold(part.Title, nameSize)) + 2*partPad, H: l.H + titleGap + partPad}
		from = layout.Point{X: at.X + (size.W-l.W)/2, Y: at.Y + titleGap}
		fmt.Fprintf(&p.frames, `<rect class="part" x="%s" y="%s" width="%s" height="%s" rx="8"/>`+"\n", px(at.X), px(at.Y), px(size.W), px(size.H))
		p.text(&p.frames, "name", at.X+partPad, at.Y+220, part.Title, "start")
	}
	for i, e := range part.Edges {
		p.edge(e, l.Routes[i], from)
	}
	for i, n := range part.Nodes {
		p.box(n, l.Boxes[i], from)
	}
	return size
}

// text adds a line of text.
func (p *picture) text(to *strings.Builder, class string, x, y int, text, anchor string) {
	fmt.Fprintf(to, `<text class="%s" x="%s" y="%s" text-anchor="%s">%s</text>`+"\n", class, px(x), px(y), anchor, html.EscapeString(text))
}

// px writes tenths of a pixel as pixels.
func px(tenths int) string {
	if tenths%10 == 0 {
		return fmt.Sprint(tenths / 10)
	}
	sign := ""
	if tenths < 0 {
		sign, tenths = "-", -tenths
	}
	return fmt.Sprintf("%s%d.%d", sign, tenths/10, tenths%10)
}
