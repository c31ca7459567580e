// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"cmp"
	"slices"
)

// firstOrder orders places by a depth-first walk from the top or from the bottom, with links in their order or in
// reverse.
func (d *drawing) firstOrder(fromTop, forward bool) {
	for i := range d.layers {
		d.layers[i] = nil
	}
	seen := map[*place]bool{}
	var visit func(p *place)
	visit = func(p *place) {
		if seen[p] {
			return
		}
		seen[p] = true
		for len(d.layers) <= p.layer {
			d.layers = append(d.layers, nil)
		}
		d.layers[p.layer] = append(d.layers[p.layer], p)
		for _, next := range p.next(fromTop, forward) {
			visit(next)
		}
	}
	for _, first := range []bool{true, false} {
		for _, box := range d.boxes {
			if (len(box.next(!fromTop, true)) == 0) == first {
				visit(box)
			}
		}
	}
	for _, layer := range d.layers {
		number(layer)
	}
}

// next returns the places linked with one below or above it, in their order or in reverse.
func (p *place) next(below, forward bool) (out []*place) {
	if below {
		for _, l := range p.downs {
			out = append(out, l.to)
		}
	} else {
		for _, l := range p.ups {
			out = append(out, l.from)
		}
	}
	if !forward {
		slices.Reverse(out)
	}
	return out
}

// number brings ordered places into their order, in the room that they have together, and sets x to the index in the layer.
func number(layer []*place) {
	var ordered []*place
	for _, p := range layer {
		if p.rank > 0 {
			ordered = append(ordered, p)
		}
	}
	slices.SortFunc(ordered, func(a, b *place) int { return cmp.Compare(a.rank, b.rank) })
	for i, p := range layer {
		if p.rank > 0 {
			layer[i], ordered = ordered[0], ordered[1:]
		}
	}
	for i, p := range layer {
		p.x = i
	}
}

// snapshot returns the current order.
func (d *drawing) snapshot() [][]*place {
	out := make([][]*place, len(d.layers))
	for i, layer := range d.layers {
		out[i] = slices.Clone(layer)
	}
	return out
}

// byNeighbours sorts a layer by the average position of the neighbours above or below. A place without neighbours
// stays. Equal places keep their order, or are reversed if mix is set.
func byNeighbours(layer []*place, above, mix bool) {
	const fine = 1 << 10 // averages are in fractions of a place
	type wish struct {
		p  *place
		at int
	}
	wishes := make([]wish, len(layer))
	for i, p := range layer {
		wishes[i] = wish{p, i * fine}
		if near := neighbours(p, above); len(near) > 0 {
			sum := 0
			for _, x := range near {
				sum += x * fine
			}
			wishes[i].at = sum / len(near)
		}
	}
	if mix {
		slices.Reverse(wishes)
	}
	slices.SortStableFunc(wishes, func(a, b wish) int { return cmp.Compare(a.at, b.at) })
	for i, w := range wishes {
		layer[i] = w.p
	}
	number(layer)
}

// neighbours returns the positions of the linked places in their layer, sorted.
func neighbours(p *place, above bool) []int {
	if above {
		out := make([]int, len(p.ups))
		for i, l := range p.ups {
			out[i] = l.from.x
		}
		slices.Sort(out)
		return out
	}
	out := make([]int, len(p.downs))
	for i, l := range p.downs {
		out[i] = l.to.x
	}
	slices.Sort(out)
	return out
}

// exchange swaps neighbours as long as that reduces crossings, for a few rounds.
func (d *drawing) exchange() {
	for better, rounds := true, 0; better && rounds < sweeps/4; rounds++ {
		better = false
		for _, layer := range d.layers {
			for i := 1; i < len(layer); i++ {
				a, b := layer[i-1], layer[i]
				if a.rank > 0 && b.rank > 0 || !crossed(a, b) {
					continue
				}
				layer[i-1], layer[i] = b, a
				a.x, b.x = b.x, a.x
				better = true
			}
		}
	}
}

// crossed reports whether swapping two neighbours in a layer would reduce the crossings of their links.
func crossed(left, right *place) bool {
	more := 0
	for _, above := range []bool{true, false} {
		mine, others := neighbours(left, above), neighbours(right, above)
		more += inversions(mine, others) - inversions(others, mine)
	}
	return more > 0
}

// inversions counts the pairs whose left number is greater than the right one.
func inversions(left, right []int) (count int) {
	j := 0
	for _, x := range left {
		for j < len(right) && right[j] < x {
			j++
		}
		count += j
	}
	return count
}

// crossings counts how often links cross.
func (d *drawing) crossings() (count int) {
	for i, layer := range d.layers[1:] {
		// Links are visited from the left to the right of the layer above. Each crosses the earlier ones that end
		// to its right.
		ended := make([]int, len(layer)+1) // sums of how many ended in a place, as a binary indexed tree
		all := 0
		for _, p := range d.layers[i] {
			ends := neighbours(p, false)
			for _, x := range ends {
				count += all
				for at := x + 1; at > 0; at -= at & -at {
					count -= ended[at]
				}
			}
			for _, x := range ends {
				all++
				for at := x + 1; at < len(ended); at += at & -at {
					ended[at]++
				}
			}
		}
	}
	return count
}
