// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import "slices"

// band is the vertical position of a layer.
type band struct{ top, height int }

// route routes the edges from place to place, and returns all coordinates. An edge is straight within a layer and
// bends only between layers, so it crosses no box.
func (d *drawing) route() Layout {
	bands := d.bands()
	out := Layout{Boxes: make([]Rect, len(d.boxes)), Routes: make([]Route, len(d.graph.Edges))}
	for i, p := range d.boxes {
		size, at := d.graph.Boxes[i], bands[p.layer]
		out.Boxes[i] = Rect{p.x + p.shift - size.W/2, at.top + (at.height-size.H)/2, size.W, size.H}
	}
	for _, c := range d.chains {
		out.Routes[c.edge] = c.route(bands, out.Boxes[c.from], out.Boxes[c.to])
	}
	for box := range d.boxes {
		d.routeLoops(box, out)
	}
	for _, layer := range d.layers {
		for _, p := range layer {
			out.W = max(out.W, p.x+(p.w+1)/2+1)
		}
	}
	last := bands[len(bands)-1]
	out.H = last.top + last.height + 1
	return out
}

// bands returns the positions of layers. The space between two layers grows with the sideways distance of edges
// there.
func (d *drawing) bands() []band {
	out, top := make([]band, len(d.layers)), 0
	for i, layer := range d.layers {
		height, far, boxes := 0, 0, false
		for _, p := range layer {
			height, boxes = max(height, p.h), boxes || p.box
			for _, l := range p.downs {
				far = max(far, abs(l.from.x+l.leave-l.to.x-l.enter))
			}
		}
		gap := min(max(layerGap, far/4), widestGap)
		if height == 0 && !boxes { // edges alone need no space
			gap /= 2
		}
		out[i] = band{top, height}
		top += height + gap
	}
	return out
}

// route routes the edge from the lower side of one box to the upper side of the other.
func (c chain) route(bands []band, from, to Rect) Route {
	first, last := c.links[0], c.links[len(c.links)-1]
	at := Point{first.from.x + first.leave, from.Y + from.H}
	points := []Point{at}
	down := func(y int) { // straight
		if y > at.Y {
			points = append(points, Point{at.X, at.Y + (y-at.Y)/3}, Point{at.X, at.Y + (y-at.Y)*2/3}, Point{at.X, y})
			at.Y = y
		}
	}
	down(bands[first.from.layer].top + bands[first.from.layer].height + stub)
	for _, l := range c.links {
		goal := Point{l.to.x + l.enter, bands[l.to.layer].top}
		if l == last {
			goal.Y -= stub
		}
		middle := (at.Y + goal.Y) / 2
		points = append(points, Point{at.X, middle}, Point{goal.X, middle}, goal)
		at = goal
		if l != last {
			down(goal.Y + bands[l.to.layer].height)
		}
	}
	down(to.Y)
	out := Route{Points: points}
	if c.turned {
		slices.Reverse(out.Points)
	}
	if p := c.label; p != nil {
		out.Label = Rect{p.x - p.w/2, bands[p.layer].top + (bands[p.layer].height-p.h)/2, p.w, p.h}
	}
	return out
}

// loopHeight returns the height of an edge from a box to itself.
func loopHeight(label Size) int { return max(label.H, loopDepth) + bendGap }

// routeLoops routes edges from the right side of a box back to it, one below the other, with their labels to the
// right.
func (d *drawing) routeLoops(box int, out Layout) {
	r, loops, high := out.Boxes[box], d.loops[box], 0
	for _, e := range loops {
		high += loopHeight(d.graph.Edges[e].Label)
	}
	right, top := r.X+r.W, r.Y+(r.H-high)/2
	for i, e := range loops {
		label := d.graph.Edges[e].Label
		height := loopHeight(label)
		leave, enter := r.Y+r.H*(2*i+1)/(2*len(loops)+1), r.Y+r.H*(2*i+2)/(2*len(loops)+1)
		middle, away := top+height/2, right+loopDepth
		out.Routes[e] = Route{Points: []Point{{right, leave}, {away, middle - loopDepth/2}, {away, middle + loopDepth/2}, {right, enter}}}
		if label.H > 0 {
			out.Routes[e].Label = Rect{right + loopDepth*3/4 + 30, middle - label.H/2, label.W, label.H}
		}
		top += height
	}
}
