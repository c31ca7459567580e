// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import "slices"

// downward returns the edges between different boxes so that all lead down: edges that close a circle are reversed.
// The search starts at the boxes without incoming edges, in their order; an edge back to a box on the current way
// closes a circle.
func downward(g Graph) (edges []downEdge) {
	outs, entered := make([][]int, len(g.Boxes)), make([]bool, len(g.Boxes))
	for i, e := range g.Edges {
		if e.From != e.To {
			outs[e.From] = append(outs[e.From], i)
			entered[e.To] = true
		}
	}
	const (
		open = iota + 1
		done
	)
	state, back := make([]int, len(g.Boxes)), make([]bool, len(g.Edges))
	var visit func(box int)
	visit = func(box int) {
		state[box] = open
		for _, i := range outs[box] {
			switch to := g.Edges[i].To; state[to] {
			case open:
				back[i] = true
			case 0:
				visit(to)
			}
		}
		state[box] = done
	}
	for _, roots := range []bool{true, false} {
		for box := range g.Boxes {
			if state[box] == 0 && entered[box] != roots {
				visit(box)
			}
		}
	}
	for i, e := range g.Edges {
		switch {
		case e.From == e.To:
		case back[i]:
			edges = append(edges, downEdge{e.To, e.From, i, true})
		default:
			edges = append(edges, downEdge{e.From, e.To, i, false})
		}
	}
	return edges
}

// downEdge leads down from one box to another one.
type downEdge struct {
	from, to int
	// edge is its number in the graph; turned says whether it is reversed.
	edge   int
	turned bool
}

// ranks returns the layer of each box, so that each edge leads at least one layer down and edges are short.
func ranks(boxes int, edges []downEdge) []int {
	ins, outs := make([][]int, boxes), make([][]int, boxes)
	for _, e := range edges {
		ins[e.to] = append(ins[e.to], e.from)
		outs[e.from] = append(outs[e.from], e.to)
	}
	rank, order := longest(ins, outs)
	for range boxes { // each round moves at least one box, except the last
		moved := false
		for _, box := range slices.Backward(order) {
			to := rank[box]
			switch up, down := len(ins[box]), len(outs[box]); {
			case down > up:
				to = lowest(rank, outs[box]) - 1
			case up > down:
				to = highest(rank, ins[box]) + 1
			}
			moved = moved || to != rank[box]
			rank[box] = to
		}
		if !moved {
			break
		}
	}
	top := lowest(rank, order)
	for i := range rank {
		rank[i] -= top
	}
	return rank
}

// longest returns for each box the length of the longest way to it, and the boxes in topological order.
func longest(ins, outs [][]int) (rank, order []int) {
	rank = make([]int, len(ins))
	left := make([]int, len(ins))
	for box := range ins {
		if left[box] = len(ins[box]); left[box] == 0 {
			order = append(order, box)
		}
	}
	for i := 0; i < len(order); i++ {
		for _, to := range outs[order[i]] {
			rank[to] = max(rank[to], rank[order[i]]+1)
			if left[to]--; left[to] == 0 {
				order = append(order, to)
			}
		}
	}
	return rank, order
}

// highest and lowest return the greatest and the least rank of some boxes.
func highest(rank, of []int) int {
	out := rank[of[0]]
	for _, box := range of {
		out = max(out, rank[box])
	}
	return out
}

func lowest(rank, of []int) int {
	out := rank[of[0]]
	for _, box := range of {
		out = min(out, rank[box])
	}
	return out
}
