// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package svg

import (
	"fmt"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl/draw"
	"github.com/handwerk-dev/handwerk/dsl/draw/layout"
)

// The size of the heads of arrows, in tenths of a pixel.
const headLength, headWidth = 90, 80

var edgeClasses = map[draw.Style]string{draw.Solid: "solid", draw.Dashed: "dashed", draw.Dotted: "dotted", draw.Thick: "thick"}

// edge adds an edge with its label, which hides what is below it.
func (p *picture) edge(e draw.Edge, route layout.Route, from layout.Point) {
	points := make([]layout.Point, len(route.Points))
	for i, at := range route.Points {
		points[i] = layout.Point{X: at.X + from.X, Y: at.Y + from.Y}
	}
	class, last := edgeClasses[e.Style], len(points)-1
	head, back := arrow(points[last-1], points[last])
	points[last] = back
	if near(points[last-1], back) { // it would go past the end
		points[last-1] = back
	}
	var path strings.Builder
	fmt.Fprintf(&path, "M%s", pair(points[0]))
	for i := 1; i < len(points); i += 3 {
		fmt.Fprintf(&path, " C%s %s %s", pair(points[i]), pair(points[i+1]), pair(points[i+2]))
	}
	fmt.Fprintf(&p.edges, `<path class="edge %s" d="%s"/>`+"\n", class, path.String())
	fmt.Fprintf(&p.edges, `<path class="head %s" d="%s"/>`+"\n", class, head)
	if len(e.Label) == 0 {
		return
	}
	r := route.Label
	r.X, r.Y = r.X+from.X, r.Y+from.Y
	fmt.Fprintf(&p.boxes, `<rect class="page" x="%s" y="%s" width="%s" height="%s"/>`+"\n", px(r.X), px(r.Y), px(r.W), px(r.H))
	for i, line := range e.Label {
		p.text(&p.boxes, "label "+class, r.X+r.W/2, r.Y+lineHeight*(i+1)-15, line, "middle")
	}
}

// arrow returns the head of an arrow, and the end of its line. Edges reach boxes straight from above, from the left
// and so on.
func arrow(before, end layout.Point) (head string, back layout.Point) {
	dx, dy := sign(end.X-before.X), sign(end.Y-before.Y)
	if dx != 0 && dy != 0 { // the line is oblique; the longer direction counts
		if abs(end.X-before.X) > abs(end.Y-before.Y) {
			dy = 0
		} else {
			dx = 0
		}
	}
	back = layout.Point{X: end.X - dx*headLength, Y: end.Y - dy*headLength}
	left := layout.Point{X: back.X + dy*headWidth/2, Y: back.Y + dx*headWidth/2}
	right := layout.Point{X: back.X - dy*headWidth/2, Y: back.Y - dx*headWidth/2}
	return fmt.Sprintf("M%s L%s L%s Z", pair(end), pair(left), pair(right)), back
}

// near reports whether the distance of two points is at most the length of an arrow's head.
func near(a, b layout.Point) bool { return abs(a.X-b.X)+abs(a.Y-b.Y) <= headLength }

func sign(x int) int {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

func abs(x int) int { return max(x, -x) }

func pair(at layout.Point) string { return px(at.X) + "," + px(at.Y) }
