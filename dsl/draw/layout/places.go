// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import "slices"

// place takes room in a layer: a box, or an edge that passes, with or without its label.
type place struct {
	// w and h are its size; shift is the offset of the box from its middle, for boxes with loops beside them.
	w, h, shift int
	box         bool
	layer       int
	// rank is the place's rank among the ordered ones; 0 if it is not ordered.
	rank int
	// x is its middle. Places of a layer are in the order of the layer.
	x int
	// ups and downs are links to the layer above and to that below.
	ups, downs []*link
}

// link connects a place with one in the next layer.
type link struct {
	from, to *place
	// leave and enter are the positions at which it meets boxes, relative to the middles of their places.
	leave, enter int
}

// chain is an edge with its places in all layers between its boxes, from top to bottom.
type chain struct {
	downEdge
	links []*link
	// label is the place with the edge's label, or nil.
	label *place
}

// bends returns the places that the edge passes.
func (c chain) bends() (out []*place) {
	for _, l := range c.links[1:] {
		out = append(out, l.from)
	}
	return out
}

// drawing is a graph that is being arranged.
type drawing struct {
	graph  Graph
	boxes  []*place
	layers [][]*place
	chains []chain
	// loops are the edges of a box to itself.
	loops map[int][]int
}

// layered arranges a graph of one part.
func layered(g Graph) Layout {
	d := &drawing{graph: g, loops: map[int][]int{}}
	d.settle()
	d.order()
	d.ports()
	d.align()
	return d.route()
}

// settle sets the layers of boxes and labels: boxes are in even layers, labels in odd ones.
func (d *drawing) settle() {
	for i, e := range d.graph.Edges {
		if e.From == e.To {
			d.loops[e.From] = append(d.loops[e.From], i)
		}
	}
	edges := downward(d.graph)
	rank := ranks(len(d.graph.Boxes), edges)
	for i, size := range d.graph.Boxes {
		beside, high := 0, 0
		for _, e := range d.loops[i] {
			label := d.graph.Edges[e].Label
			beside, high = max(beside, loopDepth+label.W), high+loopHeight(label)
		}
		d.boxes = append(d.boxes, &place{w: size.W + beside, h: max(size.H, high), shift: -beside / 2, box: true, layer: 2 * rank[i]})
		if slices.Contains(d.graph.Ordered, i) {
			d.boxes[i].rank = i + 1
		}
	}
	for _, e := range edges {
		d.chains = append(d.chains, d.chain(e))
	}
}

// chain adds an edge's places to its layers. The label is next to the beginning.
func (d *drawing) chain(e downEdge) chain {
	c, last := chain{downEdge: e}, d.boxes[e.from]
	labelled := last.layer + 1
	if e.turned {
		labelled = d.boxes[e.to].layer - 1
	}
	join := func(to *place) {
		l := &link{from: last, to: to}
		last.downs, to.ups = append(last.downs, l), append(to.ups, l)
		c.links, last = append(c.links, l), to
	}
	for layer := last.layer + 1; layer < d.boxes[e.to].layer; layer++ {
		bend := &place{layer: layer}
		if label := d.graph.Edges[e.edge].Label; layer == labelled && label.H > 0 {
			bend.w, bend.h, c.label = label.W, label.H, bend
		}
		join(bend)
	}
	join(d.boxes[e.to])
	return c
}
