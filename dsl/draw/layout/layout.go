// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package layout arranges the boxes of a directed graph in layers, so that most edges lead one way, few cross, and
// none runs through a box or through the label of another. It is pure, and computes in integers: the same graph has
// the same layout on every machine.
//
// The method is that of Sugiyama, Tagawa and Toda: edges that close a circle are reversed (ranks.go); boxes get
// layers (ranks.go); an edge that passes a layer, or has its label there, gets a place in it (places.go); places
// are sorted so that few edges cross (search.go, order.go) and get coordinates (align.go); edges are routed between
// them (route.go).
package layout

import "slices"

// Graph is the graph to arrange. Lengths are in tenths of a pixel, also in the layout.
type Graph struct {
	// Boxes are the sizes of the boxes; edges name boxes by number.
	Boxes []Size
	Edges []Edge
	// Ordered are numbers of boxes that keep the order of their numbers where they share a layer.
	Ordered []int
	// Across: edges lead from left to right, and not from top to bottom.
	Across bool
	// Width is the greatest width of unconnected parts in one row. Zero means that width and height should be about
	// equal.
	Width int
}

// Size is the size of a box, or of a label.
type Size struct{ W, H int }

// Edge leads from one box to another, or to itself. Its label is on it; a label without height means no label.
type Edge struct {
	From, To int
	Label    Size
}

// Layout has the coordinates of all boxes and edges. They are at least zero, and less than the size.
type Layout struct {
	Size
	// Boxes and Routes are in the order of the graph's boxes and edges.
	Boxes  []Rect
	Routes []Route
}

// Rect is a rectangle; X and Y are its upper left corner.
type Rect struct{ X, Y, W, H int }

// Point is a point.
type Point struct{ X, Y int }

// Route is the route of an edge.
type Route struct {
	// Points are the start, and for each cubic Bézier curve two control points and the end.
	Points []Point
	// Label is the rectangle of the label; zero for none.
	Label Rect
}

// Distances, in tenths of a pixel.
const (
	boxGap    = 260 // between boxes of a layer
	bendGap   = 140 // between edges that pass a layer
	layerGap  = 240 // between layers, at least
	widestGap = 800 // between layers, at most
	partGap   = 400 // between unconnected parts
	portGap   = 160 // between edges that meet at a box, at most
	stub      = 90  // the straight beginning and end of edges: the length of an arrow's head
	loopDepth = 220 // the depth of an edge from a box to itself
)

// Arrange computes the layout. Edges must name existing boxes.
func Arrange(g Graph) Layout {
	if g.Across {
		out := Arrange(g.turned())
		return out.turned()
	}
	out := Layout{Boxes: make([]Rect, len(g.Boxes)), Routes: make([]Route, len(g.Edges))}
	var parts []part
	for _, boxes := range components(g) {
		p := part{boxes: boxes}
		for i, e := range g.Edges {
			if slices.Contains(boxes, e.From) {
				p.edges = append(p.edges, i)
			}
		}
		p.Layout = layered(p.of(g))
		parts = append(parts, p)
	}
	for i, at := range pack(parts, g.Width) {
		out.add(parts[i], at)
	}
	return out
}

// turned returns the graph with width and height exchanged.
func (g Graph) turned() Graph {
	out := Graph{Width: g.Width, Ordered: g.Ordered}
	for _, b := range g.Boxes {
		out.Boxes = append(out.Boxes, Size{b.H, b.W})
	}
	for _, e := range g.Edges {
		out.Edges = append(out.Edges, Edge{e.From, e.To, Size{e.Label.H, e.Label.W}})
	}
	return out
}

// turned returns the layout with width and height exchanged.
func (l Layout) turned() Layout {
	out := Layout{Size: Size{l.H, l.W}, Boxes: []Rect{}, Routes: []Route{}}
	for _, b := range l.Boxes {
		out.Boxes = append(out.Boxes, Rect{b.Y, b.X, b.H, b.W})
	}
	for _, r := range l.Routes {
		turned := Route{Label: Rect{r.Label.Y, r.Label.X, r.Label.H, r.Label.W}}
		for _, p := range r.Points {
			turned.Points = append(turned.Points, Point{p.Y, p.X})
		}
		out.Routes = append(out.Routes, turned)
	}
	return out
}

// part is a connected part of a graph.
type part struct {
	// boxes and edges are their numbers in the whole, in order.
	boxes, edges []int
	Layout
}

// of returns the part of the graph as a graph of its own.
func (p part) of(g Graph) Graph {
	out, number := Graph{}, map[int]int{}
	for i, b := range p.boxes {
		number[b] = i
		out.Boxes = append(out.Boxes, g.Boxes[b])
		if slices.Contains(g.Ordered, b) {
			out.Ordered = append(out.Ordered, i)
		}
	}
	for _, e := range p.edges {
		edge := g.Edges[e]
		out.Edges = append(out.Edges, Edge{number[edge.From], number[edge.To], edge.Label})
	}
	return out
}

// add adds a part at its position.
func (l *Layout) add(p part, at Point) {
	for i, b := range p.boxes {
		l.Boxes[b] = p.Layout.Boxes[i].moved(at)
	}
	for i, e := range p.edges {
		route := Route{Label: p.Layout.Routes[i].Label}
		if route.Label != (Rect{}) {
			route.Label = route.Label.moved(at)
		}
		for _, point := range p.Layout.Routes[i].Points {
			route.Points = append(route.Points, Point{point.X + at.X, point.Y + at.Y})
		}
		l.Routes[e] = route
	}
	l.W, l.H = max(l.W, at.X+p.W), max(l.H, at.Y+p.H)
}

func (r Rect) moved(by Point) Rect { return Rect{r.X + by.X, r.Y + by.Y, r.W, r.H} }

// components returns the boxes of each connected part, in order.
func components(g Graph) [][]int {
	root := make([]int, len(g.Boxes))
	for i := range root {
		root[i] = i
	}
	find := func(i int) int {
		for root[i] != i {
			i = root[i]
		}
		return i
	}
	for _, e := range g.Edges {
		a, b := find(e.From), find(e.To)
		root[max(a, b)] = min(a, b)
	}
	out, place := [][]int{}, map[int]int{}
	for i := range g.Boxes {
		r := find(i)
		if _, known := place[r]; !known {
			place[r] = len(out)
			out = append(out, nil)
		}
		out[place[r]] = append(out[place[r]], i)
	}
	return out
}

// pack returns the positions of parts: in rows, in order.
func pack(parts []part, width int) (out []Point) {
	if width == 0 {
		area := 0
		for _, p := range parts {
			width = max(width, p.W)
			area += (p.W + partGap) * (p.H + partGap)
		}
		for width*width < area {
			width += partGap
		}
	}
	at, row := Point{}, 0
	for _, p := range parts {
		if at.X > 0 && at.X+p.W > width {
			at, row = Point{0, at.Y + row + partGap}, 0
		}
		out = append(out, at)
		at.X, row = at.X+p.W+partGap, max(row, p.H)
	}
	return out
}
