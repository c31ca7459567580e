// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package layout_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl/draw/layout"
)

// random is a graph with up to 40 boxes: some edges have labels, some lead back, some to their own box, and some boxes
// have none at all.
func random(seed uint64) layout.Graph {
	r := rand.New(rand.NewPCG(seed, 1))
	g := layout.Graph{Across: seed%2 == 1}
	for range 1 + r.IntN(40) {
		g.Boxes = append(g.Boxes, layout.Size{W: 600 + r.IntN(1800), H: 250 + r.IntN(900)})
	}
	for range r.IntN(2 * len(g.Boxes)) {
		e := layout.Edge{From: r.IntN(len(g.Boxes)), To: r.IntN(len(g.Boxes))}
		if r.IntN(2) == 0 {
			e.To = min(e.From+1+r.IntN(3), len(g.Boxes)-1)
		}
		if r.IntN(3) > 0 {
			e.Label = layout.Size{W: 200 + r.IntN(1200), H: 160 + r.IntN(300)}
		}
		g.Edges = append(g.Edges, e)
	}
	return g
}

const graphs = 60

func TestNothingLiesOnAnythingElse(t *testing.T) {
	for seed := range uint64(graphs) {
		g := random(seed)
		l := layout.Arrange(g)
		var all []layout.Rect
		for i, box := range l.Boxes {
			if box.W != g.Boxes[i].W || box.H != g.Boxes[i].H {
				t.Fatalf("graph %d: box %d is %v, want the size %v", seed, i, box, g.Boxes[i])
			}
			all = append(all, box)
		}
		for i, route := range l.Routes {
			if g.Edges[i].Label.H == 0 {
				continue
			}
			if route.Label.W != g.Edges[i].Label.W || route.Label.H != g.Edges[i].Label.H {
				t.Fatalf("graph %d: the label of edge %d is %v, want the size %v", seed, i, route.Label, g.Edges[i].Label)
			}
			all = append(all, route.Label)
		}
		whole := layout.Rect{W: l.W, H: l.H}
		for i, one := range all {
			if !inside(layout.Point{X: one.X, Y: one.Y}, whole) || !inside(layout.Point{X: one.X + one.W - 1, Y: one.Y + one.H - 1}, whole) {
				t.Fatalf("graph %d: %v is outside of %v", seed, one, l.Size)
			}
			for j, other := range all[:i] {
				if overlap(one, other) {
					t.Fatalf("graph %d: %d lies on %d: %v, %v", seed, i, j, one, other)
				}
			}
		}
	}
}

func TestEdgesRunThroughNothing(t *testing.T) {
	for seed := range uint64(graphs) {
		g := random(seed)
		l := layout.Arrange(g)
		for i, route := range l.Routes {
			e := g.Edges[i]
			points := along(route)
			first, last := points[0], points[len(points)-1]
			if !touches(first, l.Boxes[e.From]) || !touches(last, l.Boxes[e.To]) {
				t.Fatalf("graph %d: edge %d leads from %v to %v, and its boxes are %v and %v", seed, i, first, last, l.Boxes[e.From], l.Boxes[e.To])
			}
			onLabel := route.Label == (layout.Rect{})
			for _, at := range points {
				if !inside(at, layout.Rect{W: l.W, H: l.H}) {
					t.Fatalf("graph %d: edge %d leaves the picture at %v", seed, i, at)
				}
				for box, r := range l.Boxes {
					if within(at, r) {
						t.Fatalf("graph %d: edge %d runs through box %d at %v", seed, i, box, at)
					}
				}
				for other, r := range l.Routes {
					if other != i && within(at, r.Label) {
						t.Fatalf("graph %d: edge %d runs through the label of edge %d at %v", seed, i, other, at)
					}
				}
				onLabel = onLabel || e.From == e.To || within(at, route.Label)
			}
			if !onLabel {
				t.Fatalf("graph %d: the label of edge %d is not on it: %v", seed, i, route.Label)
			}
		}
	}
}

func TestOrderedBoxesOfALayerKeepTheirOrder(t *testing.T) {
	moved := 0
	for seed := range uint64(graphs) {
		g := random(seed)
		for i := range g.Boxes {
			if i%3 > 0 {
				g.Ordered = append(g.Ordered, i)
			}
		}
		g.Across = false
		free, l := layout.Arrange(layout.Graph{Boxes: g.Boxes, Edges: g.Edges}), layout.Arrange(g)
		for n, i := range g.Ordered {
			for _, j := range g.Ordered[:n] {
				a, b := l.Boxes[j], l.Boxes[i]
				if sameLayer(a, b) && connected(g, i, j) && a.X > b.X {
					t.Fatalf("graph %d: box %d stands before box %d", seed, i, j)
				}
				if a, b := free.Boxes[j], free.Boxes[i]; sameLayer(a, b) && connected(g, i, j) && a.X > b.X {
					moved++
				}
			}
		}
	}
	if moved == 0 {
		t.Error("without an order, all boxes have the same one")
	}
}

// sameLayer reports whether two boxes are beside each other: their middles have the same height.
func sameLayer(a, b layout.Rect) bool { return 2*a.Y+a.H == 2*b.Y+b.H }

// connected reports whether edges connect two boxes, in whatever direction.
func connected(g layout.Graph, a, b int) bool {
	reached := map[int]bool{a: true}
	for range g.Boxes {
		for _, e := range g.Edges {
			if reached[e.From] || reached[e.To] {
				reached[e.From], reached[e.To] = true, true
			}
		}
	}
	return reached[b]
}

func TestAGraphComesOutTheSameEachTime(t *testing.T) {
	for seed := range uint64(20) {
		first := layout.Arrange(random(seed))
		for range 3 {
			if diff := cmp.Diff(first, layout.Arrange(random(seed))); diff != "" {
				t.Fatalf("graph %d (-first +again):\n%s", seed, diff)
			}
		}
	}
}

func TestEdgesLeadOneWay(t *testing.T) {
	box := layout.Size{W: 800, H: 400}
	g := layout.Graph{Boxes: []layout.Size{box, box, box, box}, Edges: []layout.Edge{{From: 0, To: 1}, {From: 1, To: 2}, {From: 2, To: 3}, {From: 3, To: 1}}}
	down := layout.Arrange(g)
	g.Across = true
	right := layout.Arrange(g)
	for i := 1; i < 4; i++ {
		if down.Boxes[i].Y < down.Boxes[i-1].Y+box.H {
			t.Errorf("box %d is at %v, and not below %v", i, down.Boxes[i], down.Boxes[i-1])
		}
		if right.Boxes[i].X < right.Boxes[i-1].X+box.W {
			t.Errorf("box %d is at %v, and not right of %v", i, right.Boxes[i], right.Boxes[i-1])
		}
	}
	back := down.Routes[3].Points
	if first, last := back[0], back[len(back)-1]; first.Y != down.Boxes[3].Y || last.Y != down.Boxes[1].Y+box.H {
		t.Errorf("the edge back leads from %v to %v, want it to lead up", first, last)
	}
}

// TestFewEdgesCross holds graphs that can be drawn without crossings.
func TestFewEdgesCross(t *testing.T) {
	tree, ladder, mixed := layout.Graph{}, layout.Graph{}, layout.Graph{}
	for i := range 31 {
		tree.Boxes = append(tree.Boxes, layout.Size{W: 500, H: 300})
		if i > 0 {
			tree.Edges = append(tree.Edges, layout.Edge{From: (i - 1) / 2, To: i, Label: layout.Size{W: 300, H: 150}})
		}
	}
	for i := range 12 { // two chains side by side, declared in turns
		ladder.Boxes = append(ladder.Boxes, layout.Size{W: 500, H: 300})
		if i > 1 {
			ladder.Edges = append(ladder.Edges, layout.Edge{From: i - 2, To: i})
		}
	}
	ladder.Edges = append(ladder.Edges, layout.Edge{From: 0, To: 11})
	for range 8 {
		mixed.Boxes = append(mixed.Boxes, layout.Size{W: 500, H: 300})
	}
	for i := range 4 { // each leads to one of the next layer, which are declared the other way around
		mixed.Edges = append(mixed.Edges, layout.Edge{From: i, To: 7 - i}, layout.Edge{From: i, To: 7 - (i+1)%4})
	}
	mixed.Edges = mixed.Edges[:7]
	for name, g := range map[string]layout.Graph{"a tree": tree, "two chains": ladder, "a comb": mixed} {
		if n := crossings(layout.Arrange(g)); n > 0 {
			t.Errorf("%s has %d crossings, want none", name, n)
		}
	}
}

// TestAGoodOrderIsFound holds graphs that were drawn without crossings before their boxes and edges were mixed up. For most
// of them such an order is found again.
func TestAGoodOrderIsFound(t *testing.T) {
	found := 0
	for seed := range uint64(40) {
		if crossings(layout.Arrange(mixedUp(seed))) == 0 {
			found++
		}
	}
	if found < 25 {
		t.Errorf("%d of 40 graphs have no crossings, want at least 25", found)
	}
}

// mixedUp is a graph of four layers with five boxes each that can be drawn without crossings.
func mixedUp(seed uint64) (g layout.Graph) {
	const wide, deep = 5, 4
	r := rand.New(rand.NewPCG(seed, 2))
	number := r.Perm(wide * deep)
	for range number {
		g.Boxes = append(g.Boxes, layout.Size{W: 500, H: 300})
	}
	for layer := range deep - 1 {
		for upper, lower := 0, 0; upper < wide && lower < wide; {
			g.Edges = append(g.Edges, layout.Edge{From: number[layer*wide+upper], To: number[(layer+1)*wide+lower]})
			if r.IntN(2) == 0 {
				upper++
			} else {
				lower++
			}
		}
	}
	r.Shuffle(len(g.Edges), func(i, j int) { g.Edges[i], g.Edges[j] = g.Edges[j], g.Edges[i] })
	return g
}

func TestWhatNoEdgeJoinsLiesSideBySide(t *testing.T) {
	g := layout.Graph{}
	for range 9 {
		g.Boxes = append(g.Boxes, layout.Size{W: 1000, H: 1000})
	}
	l := layout.Arrange(g)
	if l.W > 2*l.H || l.H > 2*l.W {
		t.Errorf("nine squares come to %v, want about as much width as height", l.Size)
	}
	g.Width = 1 << 20
	if l = layout.Arrange(g); l.H > 1100 {
		t.Errorf("nine squares come to %v, want one row", l.Size)
	}
}

func TestAnEmptyGraphIsNoFault(t *testing.T) {
	if l := layout.Arrange(layout.Graph{}); l.W != 0 || l.H != 0 {
		t.Errorf("the size is %v", l.Size)
	}
}

// along returns points of a route that are close to each other.
func along(r layout.Route) (out []layout.Point) {
	const steps = 16
	out = append(out, r.Points[0])
	for i := 0; i+3 < len(r.Points); i += 3 {
		p := r.Points[i : i+4]
		for n := 1; n <= steps; n++ {
			a, b := steps-n, n
			at := func(of func(layout.Point) int) int {
				return (of(p[0])*a*a*a + 3*of(p[1])*a*a*b + 3*of(p[2])*a*b*b + of(p[3])*b*b*b) / (steps * steps * steps)
			}
			out = append(out, layout.Point{X: at(func(p layout.Point) int { return p.X }), Y: at(func(p layout.Point) int { return p.Y })})
		}
	}
	return out
}

// crossings counts how often routes of different edges cross.
func crossings(l layout.Layout) (count int) {
	for i, one := range l.Routes {
		for _, other := range l.Routes[:i] {
			a, b := along(one), along(other)
			for m := 1; m < len(a); m++ {
				for n := 1; n < len(b); n++ {
					if cross(a[m-1], a[m], b[n-1], b[n]) {
						count++
					}
				}
			}
		}
	}
	return count
}

func cross(a, b, c, d layout.Point) bool {
	side := func(p, q, r layout.Point) int { return (q.X-p.X)*(r.Y-p.Y) - (q.Y-p.Y)*(r.X-p.X) }
	return side(a, b, c)*side(a, b, d) < 0 && side(c, d, a)*side(c, d, b) < 0
}

func overlap(a, b layout.Rect) bool {
	return a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H
}

// inside reports whether a point is in a rectangle or on its border, within whether it is in it, and touches whether it is on
// its border.
func inside(p layout.Point, r layout.Rect) bool {
	return p.X >= r.X && p.X <= r.X+r.W && p.Y >= r.Y && p.Y <= r.Y+r.H
}

func within(p layout.Point, r layout.Rect) bool {
	return p.X > r.X && p.X < r.X+r.W && p.Y > r.Y && p.Y < r.Y+r.H
}

func touches(p layout.Point, r layout.Rect) bool { return inside(p, r) && !within(p, r) }
