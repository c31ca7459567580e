// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package layout

// place is something that has room in a layer: a box, or an edge that passes, with its label or without.
type place struct {
	// w and h are its size; shift is how far from its middle that of the box is, which has loops beside it.
	w, h, shift int
	box         bool
	layer       int
	// x is its middle. Places of a layer are in the order of the layer.
	x int
	// ups and downs are links to the layer above and to that below.
	ups, downs []*link
}

// link leads from a place to one in the next layer.
type link struct {
	from, to *place
	// leave and enter are where it meets boxes, from the middles of their places.
	leave, enter int
}

// chain is an edge, led through all the layers between its boxes, from top to bottom.
type chain struct {
	downEdge
	links []*link
	// label is the place with the edge's label, nil when there is none.
	label *place
}

// bends are the places that the edge passes.
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

// settle gives everything its layer. Boxes are in even layers, labels in odd ones.
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
	}
	for _, e := range edges {
		d.chains = append(d.chains, d.chain(e))
	}
}

// chain leads an edge through its layers. Its label is next to where it begins.
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
