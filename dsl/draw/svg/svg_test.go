// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package svg_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl/draw"
	"github.com/handwerk-dev/handwerk/dsl/draw/svg"
)

var update = flag.Bool("update", false, "write the golden files")

// two are drawings with each shape and style, one across and one down.
func two() []draw.Drawing {
	across := draw.Drawing{Title: "operator <shop> & co", Across: true, Parts: []draw.Part{{}, {
		Title: "the process", Nodes: []draw.Node{{ID: "activity", Shape: draw.Activity, Name: "warm", Lines: []string{"when the process begins"}}},
	}}}
	all := []draw.Shape{draw.Resource, draw.Handler, draw.Daemon, draw.Schedule, draw.StateMachine, draw.Child, draw.Owned, draw.Related, draw.Index, draw.Indexed}
	for i, shape := range all {
		id := "n" + strconv.Itoa(i)
		across.Parts[0].Nodes = append(across.Parts[0].Nodes, draw.Node{ID: id, Shape: shape, Name: "größe " + id, Lines: []string{`"a" < b && c`, "日本語"}})
		if i > 0 {
			across.Parts[0].Edges = append(across.Parts[0].Edges, draw.Edge{From: "n" + strconv.Itoa((i-1)/3), To: id, Style: draw.Style(i % 4), Label: []string{"edge " + id}[:i%2]})
		}
	}
	down := draw.Drawing{Title: "machine", Parts: []draw.Part{{
		Nodes: []draw.Node{
			{ID: "new", Shape: draw.Start, Name: "new"}, {ID: "a", Shape: draw.State, Name: "Pending"}, {ID: "b", Shape: draw.Terminal, Name: "Done"},
			{ID: "c", Shape: draw.Failed, Name: "Failed"}, {ID: "d", Shape: draw.Former, Name: "Old"},
		},
		Edges: []draw.Edge{
			{From: "new", To: "a"}, {From: "a", To: "b", Label: []string{"it is done,", "all of it"}}, {From: "a", To: "c", Style: draw.Dashed, Label: []string{"after 10m"}},
			{From: "c", To: "a", Style: draw.Thick, Label: []string{"by hand"}}, {From: "d", To: "a", Style: draw.Dotted}, {From: "a", To: "a", Style: draw.Thick, Label: []string{"by hand: again"}},
		},
	}, {Title: "when the object is deleted", Nodes: []draw.Node{{ID: "gone", Shape: draw.Terminal, Name: "Gone"}}}}}
	return []draw.Drawing{across, down}
}

func TestPicture(t *testing.T) {
	const file = "testdata/two.svg"
	got := svg.Render(two())
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for range 10 {
		if again := svg.Render(two()); again != got {
			t.Fatalf("another time it is another one:\n%s", cmp.Diff(got, again))
		}
	}
}

// TestAllThatIsSaidIsInThePicture holds that the picture is XML, and that readers see each text as it is.
func TestAllThatIsSaidIsInThePicture(t *testing.T) {
	texts, elements := parsed(t, svg.Render(two()))
	for _, d := range two() {
		want := []string{d.Title}
		edges := 0
		for _, p := range d.Parts {
			if p.Title != "" {
				want = append(want, p.Title)
			}
			for _, n := range p.Nodes {
				want = append(append(want, n.Name), n.Lines...)
			}
			for _, e := range p.Edges {
				want = append(want, e.Label...)
				edges++
			}
		}
		for _, text := range want {
			if !slices.Contains(texts, text) {
				t.Errorf("%q is not in the picture", text)
			}
		}
		if elements["path"] < 2*edges {
			t.Errorf("there are %d paths, want a line and a head for each of %d edges", elements["path"], edges)
		}
	}
	if boxes := elements["rect"]; boxes < 17 {
		t.Errorf("there are %d rectangles", boxes)
	}
}

// TestThePictureIsReadableOnAnyBackground holds that it brings its own, and colors for dark ones.
func TestThePictureIsReadableOnAnyBackground(t *testing.T) {
	picture := svg.Render(two())
	light, dark, found := strings.Cut(picture, "@media (prefers-color-scheme: dark) {")
	if !found {
		t.Fatal("there are no colors for a dark background")
	}
	for _, class := range []string{".handwerk .page { fill:", ".handwerk text { fill:", ".handwerk .edge { ", ".handwerk .line { fill:"} {
		if !strings.Contains(light, class) || !strings.Contains(dark, class) {
			t.Errorf("%s is not set for both", class)
		}
	}
	if !strings.Contains(dark, `<rect class="page" width=`) {
		t.Error("there is no background")
	}
}

// TestTextFitsItsBox holds the widths of boxes against those of letters of Verdana and DejaVu Sans, the widest of the fonts that
// readers are likely to have.
func TestTextFitsItsBox(t *testing.T) {
	widths := map[rune]int{ // of DejaVu Sans, in thousandths
		'a': 613, 'b': 635, 'e': 615, 'f': 352, 'g': 635, 'i': 278, 'l': 278, 'm': 974, 'n': 634, 'o': 612, 'r': 411, 's': 521, 't': 392, 'w': 818, 'x': 592,
		'A': 684, 'D': 770, 'M': 863, 'R': 695, 'W': 989, '0': 636, '.': 318, ' ': 318, '=': 838, '>': 838, '&': 780, '(': 390, '/': 337, '_': 500, '\'': 275, '"': 460, ',': 318, '-': 361,
	}
	for _, line := range []string{"looks at all but the status", "self.status.replicas >= 0 && Mow(a) == 'W0'", "somewhere", "MMMWWWmmmwww", "Deleted - Assigned, \"Removed\"", "fails"} {
		need := 0
		for _, r := range line {
			w, known := widths[r]
			if !known {
				w = 635
			}
			need += w * 110 / 1000
		}
		d := draw.Drawing{Title: "x", Parts: []draw.Part{{Nodes: []draw.Node{{ID: "a", Shape: draw.Handler, Name: "x", Lines: []string{line}}}}}}
		_, rest, _ := strings.Cut(svg.Render([]draw.Drawing{d}), `<rect class="box handler"`)
		_, rest, _ = strings.Cut(rest, `width="`)
		text, _, _ := strings.Cut(rest, `"`)
		if width, err := strconv.ParseFloat(text, 64); err != nil || int(width*10) < need {
			t.Errorf("%q needs %d tenths of a pixel, and its box is %s wide: %v", line, need, text, err)
		}
	}
}

// parsed returns the texts of an XML document, and how many elements there are of each name.
func parsed(t *testing.T, document string) (texts []string, elements map[string]int) {
	t.Helper()
	elements = map[string]int{}
	decoder := xml.NewDecoder(strings.NewReader(document))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return texts, elements
		}
		if err != nil {
			t.Fatalf("reading the picture: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			elements[token.Name.Local]++
		case xml.CharData:
			texts = append(texts, string(token))
		}
	}
}

// TestALegendHasWhatIsDrawn holds that each symbol of a drawing is explained once, and no other one.
func TestALegendHasWhatIsDrawn(t *testing.T) {
	node := func(id string, shape draw.Shape) draw.Node { return draw.Node{ID: id, Shape: shape, Name: "box " + id} }
	for name, of := range map[string]struct {
		nodes []draw.Node
		edges []draw.Edge
		want  []string
	}{
		"a handler and what it reads": {
			[]draw.Node{node("a", draw.Resource), node("b", draw.Handler), node("c", draw.Handler), node("d", draw.Related)},
			[]draw.Edge{{From: "a", To: "b"}, {From: "a", To: "c"}, {From: "b", To: "d", Style: draw.Dotted}},
			[]string{"resource", "handler", "related objects", "runs", "reads"},
		},
		"what a solid edge means depends on where it leads": {
			[]draw.Node{node("a", draw.Resource), node("b", draw.Handler), node("c", draw.Child), node("d", draw.Child), node("e", draw.Index)},
			[]draw.Edge{{From: "a", To: "b"}, {From: "b", To: "c"}, {From: "b", To: "d"}, {From: "a", To: "e"}},
			[]string{"resource", "handler", "child", "index", "runs or makes or fills"},
		},
		"shapes that look the same": {
			[]draw.Node{node("a", draw.Activity), node("b", draw.Daemon), node("c", draw.Owned), node("d", draw.Child)}, nil,
			[]string{"daemon, activity", "child"},
		},
		"a machine": {
			[]draw.Node{node("a", draw.Start), node("b", draw.State), node("c", draw.Failed)},
			[]draw.Edge{{From: "a", To: "b"}, {From: "b", To: "c", Style: draw.Dashed}, {From: "c", To: "b", Style: draw.Thick}},
			[]string{"state", "failed state", "goes on by itself", "after a time or too many failures", "goes on by hand"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := draw.Drawing{Title: "title", Parts: []draw.Part{{Nodes: of.nodes, Edges: of.edges}}}
			texts, _ := parsed(t, svg.Render([]draw.Drawing{d}))
			texts = slices.DeleteFunc(texts, func(text string) bool {
				return strings.TrimSpace(text) == "" || text == "title" || strings.HasPrefix(text, "box ") || strings.HasPrefix(text, "\n.handwerk")
			})
			if diff := cmp.Diff(of.want, texts); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestThePictureUsesItsWidth holds that narrow drawings are beside each other below a wide one, and that all is within.
func TestThePictureUsesItsWidth(t *testing.T) {
	wide := draw.Drawing{Title: strings.Repeat("wide ", 24)}
	narrow := draw.Drawing{Title: "narrow", Parts: []draw.Part{{Nodes: []draw.Node{{ID: "a", Shape: draw.State, Name: "Ready"}}}}}
	picture := svg.Render([]draw.Drawing{wide, narrow, narrow, narrow})
	var at [][2]float64
	for text := range strings.SplitSeq(picture, `<g transform="translate(`) {
		x, rest, found := strings.Cut(text, " ")
		y, _, _ := strings.Cut(rest, ")")
		if px, err := strconv.ParseFloat(x, 64); found && err == nil {
			py, _ := strconv.ParseFloat(y, 64)
			at = append(at, [2]float64{px, py})
		}
	}
	if len(at) != 4 {
		t.Fatalf("there are %d drawings: %v", len(at), at)
	}
	if at[1][1] <= at[0][1] || at[2][1] != at[1][1] || at[2][0] <= at[1][0] || at[3][1] != at[1][1] {
		t.Errorf("the drawings are at %v, want the narrow ones in one row below the wide one", at)
	}
	_, rest, _ := strings.Cut(picture, `width="`)
	total, _, _ := strings.Cut(rest, `"`)
	if whole, err := strconv.ParseFloat(total, 64); err != nil || at[3][0]+60 > whole {
		t.Errorf("the picture is %s wide, and a drawing is at %v", total, at[3])
	}
}
