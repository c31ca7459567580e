// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package svg

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl/draw"
	"github.com/handwerk-dev/handwerk/dsl/draw/layout"
)

// The sizes of a legend, in tenths of a pixel.
const (
	legendGap    = 300 // between a drawing and its legend
	legendRow    = 230 // the height of a row
	legendLeast  = 5000
	symbolWidth  = 300
	symbolHeight = 140
	symbolGap    = 70  // between a symbol and its text
	entryGap     = 280 // between two entries of a row
)

// shapeWords say what the shapes mean. The start of a machine has its own word beside it.
var shapeWords = map[draw.Shape]string{
	draw.Resource: "resource", draw.Handler: "handler", draw.Daemon: "daemon", draw.Schedule: "handler of the resource as a whole",
	draw.StateMachine: "machine", draw.Activity: "activity", draw.Child: "child", draw.Owned: "child", draw.Related: "related objects",
	draw.Index: "index", draw.Indexed: "resource of an index", draw.State: "state", draw.Terminal: "terminal state",
	draw.Failed: "failed state", draw.Former: "state of an earlier version",
}

// operatorWords and machineWords say what the styles of edges mean in the two kinds of drawings. In that of an operator, a solid
// edge means what verbs says of the box to which it leads.
var (
	operatorWords = map[draw.Style]string{draw.Dashed: "waits for", draw.Dotted: "reads"}
	verbs         = map[draw.Shape]string{draw.Child: "makes", draw.Owned: "owns", draw.Index: "fills"}
	machineWords  = map[draw.Style]string{
		draw.Solid: "goes on by itself", draw.Dashed: "after a time or too many failures", draw.Dotted: "is now", draw.Thick: "goes on by hand",
	}
)

// entry is a symbol of a drawing with its meaning. It is a box, or an edge.
type entry struct {
	text  string
	edge  bool
	look  look
	style draw.Style
}

// entriesOf returns the entries for the symbols that a drawing has: boxes in the order of their shapes, then edges.
func entriesOf(d draw.Drawing) (out []entry) {
	var shapes []draw.Shape
	shapeOf, words := map[string]draw.Shape{}, maps.Clone(operatorWords)
	for _, p := range d.Parts {
		for _, n := range p.Nodes {
			shapes = append(shapes, n.Shape)
			shapeOf[n.ID] = n.Shape
		}
	}
	if slices.Contains(shapes, draw.Start) {
		words = maps.Clone(machineWords)
	} else {
		words[draw.Solid] = deeds(d, shapeOf)
	}
	slices.Sort(shapes)
	for _, s := range slices.Compact(shapes) {
		out = explained(out, s)
	}
	for _, s := range stylesOf(d) {
		if words[s] != "" {
			out = append(out, entry{text: words[s], edge: true, style: s})
		}
	}
	return out
}

// stylesOf returns the styles of a drawing's edges, each once.
func stylesOf(d draw.Drawing) (out []draw.Style) {
	for _, p := range d.Parts {
		for _, e := range p.Edges {
			out = append(out, e.Style)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// deeds says what the solid edges in the drawing of an operator mean, as in "runs or makes".
func deeds(d draw.Drawing, shapeOf map[string]draw.Shape) string {
	var out []string
	for _, p := range d.Parts {
		for _, e := range p.Edges {
			if verb := cmp.Or(verbs[shapeOf[e.To]], "runs"); e.Style == draw.Solid && !slices.Contains(out, verb) {
				out = append(out, verb)
			}
		}
	}
	return strings.Join(out, " or ")
}

// explained adds the entry of a shape. Shapes that look the same have one.
func explained(entries []entry, s draw.Shape) []entry {
	text := shapeWords[s]
	i := slices.IndexFunc(entries, func(e entry) bool { return e.look == looks[s] })
	switch {
	case text == "":
	case i < 0:
		return append(entries, entry{text: text, look: looks[s]})
	case !slices.Contains(strings.Split(entries[i].text, ", "), text):
		entries[i].text += ", " + text
	}
	return entries
}

// legend adds what the symbols of a drawing mean, in rows that are as wide as the drawing, and returns its size.
func (p *picture) legend(d draw.Drawing, at layout.Point, most int) (size layout.Size) {
	next := layout.Point{X: at.X, Y: at.Y + legendGap}
	for _, e := range entriesOf(d) {
		used := symbolWidth + symbolGap + width(e.text, lineSize)
		if next.X > at.X && next.X+used > at.X+max(most, legendLeast) {
			next = layout.Point{X: at.X, Y: next.Y + legendRow}
		}
		p.symbol(e, next)
		p.text(&p.boxes, "line", next.X+symbolWidth+symbolGap, next.Y+symbolHeight-30, e.text, "start")
		size = layout.Size{W: max(size.W, next.X+used-at.X), H: next.Y + legendRow - at.Y}
		next.X += used + entryGap
	}
	return size
}

// symbol adds a small box, or a short edge.
func (p *picture) symbol(e entry, at layout.Point) {
	if !e.edge {
		e.look.round = min(e.look.round/2, symbolHeight/20)
		p.frame(e.look, layout.Rect{X: at.X, Y: at.Y, W: symbolWidth, H: symbolHeight}, 20)
		return
	}
	y := at.Y + symbolHeight/2
	end := layout.Point{X: at.X + symbolWidth, Y: y}
	head, back := arrow(layout.Point{X: at.X, Y: y}, end)
	class := edgeClasses[e.style]
	fmt.Fprintf(&p.boxes, `<path class="edge %s" d="M%s L%s"/>`+"\n", class, px(at.X)+","+px(y), pair(back))
	fmt.Fprintf(&p.boxes, `<path class="head %s" d="%s"/>`+"\n", class, head)
}
