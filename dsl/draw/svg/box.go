// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package svg

import (
	"fmt"

	"github.com/handwerk-dev/handwerk/dsl/draw"
	"github.com/handwerk-dev/handwerk/dsl/draw/layout"
)

// The sizes of boxes and text, in tenths of a pixel.
const (
	titleSize = 160
	nameSize  = 130
	lineSize  = 110

	nameHeight = 170
	lineHeight = 145
	padX, padY = 110, 70
	least      = 640 // the width of a box
	startSize  = 140
)

// look is the style of a shape: its class, the radius of its corners, and whether it has two borders.
type look struct {
	class  string
	round  int
	double bool
}

var looks = map[draw.Shape]look{
	draw.Resource:     {"resource", 2, true},
	draw.Handler:      {"handler", 3, false},
	draw.Daemon:       {"handler", 20, false},
	draw.Schedule:     {"handler", 12, false},
	draw.StateMachine: {"handler", 3, true},
	draw.Activity:     {"handler", 20, false},
	draw.Child:        {"child", 10, false},
	draw.Owned:        {"child", 10, false},
	draw.Related:      {"related", 3, false},
	draw.Index:        {"related", 3, true},
	draw.Indexed:      {"resource", 2, false},
	draw.State:        {"state", 8, false},
	draw.Terminal:     {"terminal", 14, true},
	draw.Failed:       {"failed", 14, true},
	draw.Former:       {"former", 8, false},
}

// boxSize returns the size of a node.
func boxSize(n draw.Node) layout.Size {
	if n.Shape == draw.Start {
		return layout.Size{W: max(startSize, width(n.Name, lineSize)), H: startSize + lineHeight}
	}
	size := layout.Size{W: bold(n.Name, nameSize), H: nameHeight + lineHeight*len(n.Lines) + 2*padY}
	for _, line := range n.Lines {
		size.W = max(size.W, width(line, lineSize))
	}
	size.W = max(size.W+2*padX, least)
	return size
}

// labelSize returns the size of an edge's label.
func labelSize(e draw.Edge) layout.Size {
	if len(e.Label) == 0 {
		return layout.Size{}
	}
	size := layout.Size{H: lineHeight*len(e.Label) + 40}
	for _, line := range e.Label {
		size.W = max(size.W, width(line, lineSize)+60)
	}
	return size
}

// box adds a node.
func (p *picture) box(n draw.Node, r layout.Rect, from layout.Point) {
	r.X, r.Y = r.X+from.X, r.Y+from.Y
	middle := r.X + r.W/2
	if n.Shape == draw.Start {
		p.text(&p.boxes, "line", middle, r.Y+100, n.Name, "middle")
		fmt.Fprintf(&p.boxes, `<circle class="start" cx="%s" cy="%s" r="%s"/>`+"\n", px(middle), px(r.Y+lineHeight+startSize/2), px(startSize/2))
		return
	}
	p.frame(looks[n.Shape], r, 30)
	y := r.Y + padY + 125
	p.text(&p.boxes, "name", middle, y, n.Name, "middle")
	for _, line := range n.Lines {
		y += lineHeight
		p.text(&p.boxes, "line", middle, y+10, line, "middle")
	}
}

// frame adds the border of a box. A second border is so much within the first one.
func (p *picture) frame(l look, r layout.Rect, in int) {
	fmt.Fprintf(&p.boxes, `<rect class="box %s" x="%s" y="%s" width="%s" height="%s" rx="%d"/>`+"\n", l.class, px(r.X), px(r.Y), px(r.W), px(r.H), l.round)
	if l.double {
		fmt.Fprintf(&p.boxes, `<rect class="inner %s" x="%s" y="%s" width="%s" height="%s" rx="%d"/>`+"\n",
			l.class, px(r.X+in), px(r.Y+in), px(r.W-2*in), px(r.H-2*in), max(l.round-in/10, 0))
	}
}

// width estimates the width of text at a size for common sans-serif fonts, with some margin.
func width(text string, size int) (out int) {
	for _, r := range text {
		out += letter(r) * size
	}
	return (out + 999) / 1000
}

// bold is width for bold text.
func bold(text string, size int) int { return width(text, size) * 11 / 10 }

// letter returns the width of a letter, in thousandths of the size of the font.
func letter(r rune) int {
	switch {
	case draw.Columns(r) != 1:
		return 1050 * draw.Columns(r) / 2
	case within(r, "ijl'|.,:;!I[]()/\\ `"):
		return 340
	case within(r, "rtf-\"{}*^J"):
		return 430
	case within(r, "mwMW@%…—→"):
		return 950
	case r >= 'A' && r <= 'Z', within(r, "+<>=~#&_"):
		return 740
	}
	return 620
}

func within(r rune, letters string) bool {
	for _, one := range letters {
		if one == r {
			return true
		}
	}
	return false
}
