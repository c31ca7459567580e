// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package draw_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/draw"
)

// hostile are texts with what has a meaning in some of the formats.
var hostile = []string{
	`plain`, `a "quoted" word`, `a < b && c > d`, `<b>bold</b><script>x</script>`, `back\slash \n newline \N \G`, "`code`", "*a* _b_ **c**",
	"1. first", "- item", "# head", "x # y #35; #quot;", `style: x#y;`, `classDef x:#f00;`, `%% comment`, `%%{init: {"theme":"dark"}}%%`,
	`{curly} [square] (round) |pipe|`, "end", "subgraph end", "Größe 日本語 𝒳 é", "a --> b", ":::class", "$$x^2$$", "fa:fa-car car",
	"http://example.com/a_b", "&amp; &lt; &#60;", "~~strike~~", "1: a.b.c == 'x'", "a;b;c", "@{shape: circle}", "${a.b}[0] {x: y}", "a]:::b", "])", "}}", "---", "```", "]]>", "<!-- x -->", "*/", `\`, `"`, "\u202eturned",
	"first\nsecond\r\nthird", "a\x00b\xff", "", " ",
}

// ofHostile draws a machine with such texts wherever there is one.
func ofHostile() []draw.Drawing {
	m := &dsl.Machine{Migrate: map[string]string{}}
	for _, text := range hostile {
		m.States = append(m.States, dsl.State{Name: text, Doc: text, Action: text, Condition: text, Transitions: []dsl.Transition{
			{To: text, Why: text, When: holds}, {To: text, Why: text, Manual: true},
		}})
		m.Migrate["old "+text] = text
	}
	return []draw.Drawing{draw.Machine(m, strings.Join(hostile, " "))}
}

func TestTextsOfAnyKindAreWellFormed(t *testing.T) {
	for name, drawings := range map[string][]draw.Drawing{"hostile": ofHostile(), "everything": draw.All(everything()), "nothing": {draw.Machine(&dsl.Machine{}, "")}} {
		t.Run(name, func(t *testing.T) {
			for _, fault := range mermaidFaults(draw.Mermaid(drawings), len(drawings)) {
				t.Errorf("Mermaid: %s", fault)
			}
			for _, fault := range dotFaults(draw.Dot(drawings)) {
				t.Errorf("Graphviz: %s", fault)
			}
		})
	}
}

var (
	label        = `"((?:[^"#;<>&|\\` + "`" + `~*%]|<br/>|#(?:quot|amp|lt|gt|[0-9]+);)+)"`
	mermaidNode  = regexp.MustCompile(`^ +([A-Za-z0-9_]+)(\[\[|\[/|\[\(|\[|\(\[|\(\(|\(|\{\{)` + label + `(\]\]|/\]|\)\]|\]|\]\)|\)\)|\)|\}\})(:::[a-z]+)?$`)
	mermaidEdge  = regexp.MustCompile(`^ +([A-Za-z0-9_]+) (?:-->|-\.->|-\.-o|==>)(?:\|` + label + `\|)? ([A-Za-z0-9_]+)$`)
	mermaidOther = regexp.MustCompile(`^(%%\{init: \{"flowchart": \{"wrappingWidth": [0-9]+\}\}\}%%|flowchart (LR|TB)| +subgraph part_[0-9]+\[` + label + `\]| +direction (LR|TB)| +end| +classDef [a-z]+ stroke[a-z0-9:#,\- ]+)$`)
)

// mermaidFaults says what is wrong with some blocks: each line has one of the forms that Mermaid reads, boxes are closed
// as they are opened, edges are between boxes that there are, and subgraphs end.
func mermaidFaults(text string, blocks int) (faults []string) {
	parts := strings.Split(text, "```mermaid\n")
	if len(parts) != blocks+1 {
		return []string{fmt.Sprintf("%d blocks, want %d", len(parts)-1, blocks)}
	}
	note := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for _, part := range parts[1:] {
		block, _, closed := strings.Cut(part, "\n```\n")
		if !closed {
			note("a block is not closed")
		}
		nodes, open := map[string]bool{}, 0
		for line := range strings.SplitSeq(block, "\n") {
			if node := mermaidNode.FindStringSubmatch(line); node != nil {
				pairs := map[string]string{"[[": "]]", "[/": "/]", "[(": ")]", "[": "]", "([": "])", "((": "))", "(": ")", "{{": "}}"}
				if pairs[node[2]] != node[4] || nodes[node[1]] {
					note("box %s", line)
				}
				nodes[node[1]] = true
			} else if edge := mermaidEdge.FindStringSubmatch(line); edge != nil {
				if !nodes[edge[1]] || !nodes[edge[3]] {
					note("an edge between unknown nodes: %s", line)
				}
			} else if !mermaidOther.MatchString(line) {
				note("line %q", line)
			}
			switch strings.Fields(line)[0] {
			case "subgraph":
				open++
			case "end":
				open--
			}
		}
		if open != 0 {
			note("a subgraph is not closed")
		}
	}
	return faults
}

var (
	dotString = `"(?:[^"\\&]|\\["\\n]|&amp;)*"`
	dotLine   = regexp.MustCompile(`^(digraph ` + dotString + ` \{|\}| +(graph|node|edge|[A-Za-z0-9_]+|[A-Za-z0-9_]+ -> [A-Za-z0-9_]+) \[[a-z]+=(` + dotString + `|[a-zA-Z0-9.]+)(, [a-z]+=(` + dotString + `|[a-zA-Z0-9.]+))*\];| +subgraph cluster_[0-9]+ \{| +label=` + dotString + `;| +\}|)$`)
)

// dotFaults says what is wrong with graphs for Graphviz.
func dotFaults(text string) (faults []string) {
	open := 0
	for line := range strings.SplitSeq(text, "\n") {
		if !dotLine.MatchString(line) {
			faults = append(faults, fmt.Sprintf("line %q", line))
		}
		if strings.HasSuffix(line, " {") {
			open++
		} else if strings.HasSuffix(line, "}") {
			open--
		}
	}
	if open != 0 {
		faults = append(faults, "a graph is not closed")
	}
	return faults
}

// TestReadersSeeTheText holds that what programs make of a label is the text that it was made of.
func TestReadersSeeTheText(t *testing.T) {
	number := regexp.MustCompile(`#([0-9]+|quot|amp|lt|gt);`)
	named := map[string]string{"quot": `"`, "amp": "&", "lt": "<", "gt": ">"}
	decoded := func(text string) string { // as Mermaid does
		text = number.ReplaceAllStringFunc(text, func(found string) string {
			name := number.FindStringSubmatch(found)[1]
			if n, err := strconv.Atoi(name); err == nil {
				return string(rune(n))
			}
			return named[name]
		})
		return strings.ReplaceAll(text, "\u200b", "")
	}
	unquote := strings.NewReplacer(`\\`, `\`, `\"`, `"`, "&amp;", "&") // as Graphviz does
	for _, text := range hostile {
		if strings.ContainsAny(text, "\n\x00\u202e") || strings.TrimSpace(text) == "" {
			continue // which is shown in another way
		}
		m := &dsl.Machine{States: []dsl.State{{Name: "A", Doc: text}}}
		drawings := []draw.Drawing{draw.Machine(m, "x")}
		mermaid := mermaidNode.FindStringSubmatch(lineWith(draw.Mermaid(drawings), "state_A"))
		if mermaid == nil {
			t.Errorf("%q is no box for Mermaid:\n%s", text, draw.Mermaid(drawings))
			continue
		}
		got := strings.Join(strings.Split(mermaid[3], "<br/>")[1:], " ")
		if diff := cmp.Diff(text, decoded(got)); diff != "" {
			t.Errorf("Mermaid (-want +got):\n%s", diff)
		}
		dot := lineWith(draw.Dot(drawings), "state_A")
		got = dot[strings.Index(dot, `\n`)+2 : strings.LastIndex(dot, `"`)]
		if diff := cmp.Diff(text, unquote.Replace(got)); diff != "" {
			t.Errorf("Graphviz (-want +got):\n%s", diff)
		}
	}
}

// lineWith returns the first line that begins with a word.
func lineWith(text, word string) string {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), word) {
			return line
		}
	}
	return ""
}
