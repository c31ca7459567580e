// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"cmp"
	"slices"
)

// rounds is how often places are moved towards their neighbours.
const rounds = 80

// ports spreads the edges at each side of a box, in the order of their other ends.
func (d *drawing) ports() {
	for i, box := range d.boxes {
		slices.SortStableFunc(box.ups, func(a, b *link) int { return cmp.Compare(a.from.x, b.from.x) })
		slices.SortStableFunc(box.downs, func(a, b *link) int { return cmp.Compare(a.to.x, b.to.x) })
		width := d.graph.Boxes[i].W
		for at, l := range box.ups {
			l.enter = box.shift + spread(at, len(box.ups), width)
		}
		for at, l := range box.downs {
			l.leave = box.shift + spread(at, len(box.downs), width)
		}
	}
}

// spread returns the position of one of several ports, relative to the middle of the side.
func spread(at, of, width int) int {
	if of == 1 {
		return 0
	}
	gap := min(portGap, width*4/5/(of-1))
	return (2*at - of + 1) * gap / 2
}

// align sets the horizontal coordinates of places. Edges should be straight, long ones above all. Places keep their
// order and distances.
func (d *drawing) align() {
	for _, layer := range d.layers {
		x := 0
		for i, p := range layer {
			if i > 0 {
				x += apart(layer[i-1], p)
			}
			p.x = x
		}
	}
	for round := range rounds {
		up, down := true, true
		if round < rounds/2 { // first above, then below, so that changes spread fast
			up, down = round%2 == 0, round%2 == 1
		}
		for i := range d.layers {
			if !up {
				i = len(d.layers) - 1 - i
			}
			ease(d.layers[i], up, down)
		}
	}
	d.straighten()
	d.toOrigin()
}

// apart returns the least distance of the middles of two neighbours in a layer.
func apart(left, right *place) int {
	gap := boxGap
	if !left.box && !right.box {
		gap = bendGap
	} else if left.box != right.box {
		gap = (boxGap + bendGap) / 2
	}
	return (left.w+right.w+1)/2 + gap
}

// block is a group of neighbours in a layer that touch each other and move together.
type block struct{ sum, weight, first int }

// ease moves the places of a layer as near to their neighbours above, below or both as their order and distances
// allow: the sum of the squared distances is minimal. From the left on, blocks that would overlap are joined.
func ease(layer []*place, up, down bool) {
	var blocks []block
	offset := make([]int, len(layer))
	for i, p := range layer {
		if i > 0 {
			offset[i] = offset[i-1] + apart(layer[i-1], p)
		}
		sum, weight := wanted(p, up, down)
		now := block{sum - offset[i]*weight, weight, i}
		for len(blocks) > 0 && before(now, blocks[len(blocks)-1]) {
			last := blocks[len(blocks)-1]
			blocks = blocks[:len(blocks)-1]
			now = block{now.sum + last.sum, now.weight + last.weight, last.first}
		}
		blocks = append(blocks, now)
	}
	for i, b := range blocks {
		end := len(layer)
		if i+1 < len(blocks) {
			end = blocks[i+1].first
		}
		for at := b.first; at < end; at++ {
			layer[at].x = divide(b.sum, b.weight) + offset[at]
		}
	}
}

func before(a, b block) bool { return divide(a.sum, a.weight) < divide(b.sum, b.weight) }

// divide rounds down, also for negative numbers.
func divide(a, b int) int {
	if a < 0 {
		return -((-a + b - 1) / b)
	}
	return a / b
}

// wanted returns the weighted sum of the positions that a place should have, and the sum of the weights. Its
// current position has a small weight.
func wanted(p *place, up, down bool) (sum, weight int) {
	sum, weight = p.x, 1
	add := func(x, w int) { sum, weight = sum+x*w, weight+w }
	if up {
		for _, l := range p.ups {
			add(l.from.x+l.leave-l.enter, l.weight())
		}
	}
	if down {
		for _, l := range p.downs {
			add(l.to.x+l.enter-l.leave, l.weight())
		}
	}
	return sum, weight
}

// weight says how much it matters that a link is straight.
func (l *link) weight() int {
	switch {
	case l.from.box && l.to.box:
		return 2
	case l.from.box || l.to.box:
		return 4
	}
	return 16
}

// straighten makes edges straight where there is room, from the right to the left and back, because a moved edge
// makes room for the next.
func (d *drawing) straighten() {
	at := map[*place]int{}
	for _, layer := range d.layers {
		for i, p := range layer {
			at[p] = i
		}
	}
	var long []chain
	for _, c := range d.chains {
		if len(c.links) > 1 {
			long = append(long, c)
		}
	}
	for range 2 {
		slices.SortStableFunc(long, func(a, b chain) int { return cmp.Compare(b.bends()[0].x, a.bends()[0].x) })
		for range 2 {
			for _, c := range long {
				d.straight(c, at)
			}
			slices.Reverse(long)
		}
	}
}

// straight makes an edge straight as far as there is room, and continues from there, if the edge can then reach its
// boxes straight.
func (d *drawing) straight(c chain, at map[*place]int) {
	first, last := c.links[0], c.links[len(c.links)-1]
	for rest := c.bends(); len(rest) > 0; {
		from, to, sum, n := -far, far, 0, 0
		for ; n < len(rest); n++ {
			least, most := d.room(rest[n], at)
			if max(from, least) > min(to, most) {
				break
			}
			from, to, sum = max(from, least), min(to, most), sum+rest[n].x
		}
		if n == 0 { // no room even at the current position, because of rounding
			rest = rest[1:]
			continue
		}
		x := min(max(sum/n, from), to)
		begin, end := first.from.x+first.leave, last.to.x+last.enter
		if abs(end-x) < abs(begin-x) {
			begin, end = end, begin
		}
		for _, ahead := range []int{end, begin} { // the nearer one last, for it counts
			if from <= ahead && ahead <= to {
				x = ahead
			}
		}
		for _, bend := range rest[:n] {
			bend.x = x
		}
		rest = rest[n:]
	}
}

// room returns how far a place can move between its neighbours.
func (d *drawing) room(p *place, at map[*place]int) (from, to int) {
	layer, i := d.layers[p.layer], at[p]
	from, to = -far, far
	if i > 0 {
		from = layer[i-1].x + apart(layer[i-1], p)
	}
	if i+1 < len(layer) {
		to = layer[i+1].x - apart(p, layer[i+1])
	}
	return from, to
}

// far is larger than any coordinate.
const far = 1 << 40

func abs(x int) int { return max(x, -x) }

// toOrigin moves everything so that the leftmost place is at zero.
func (d *drawing) toOrigin() {
	left := far
	for _, layer := range d.layers {
		for _, p := range layer {
			left = min(left, p.x-(p.w+1)/2)
		}
	}
	for _, layer := range d.layers {
		for _, p := range layer {
			p.x -= left
		}
	}
}
