// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// tame writes what commands say of a cluster. Texts of objects, of errors and of answers get no control over a terminal: what
// steers it is escaped as in JSON, so that answers in JSON and YAML remain what they are. Each write has whole characters.
type tame struct {
	io.Writer
	// colors lets colors through. Texts of others are escaped before they get one.
	colors bool
	// width is the number of columns of the terminal; zero for other writers.
	width int
}

// terminal returns a writer for people. It knows the colors and the width of a terminal.
func (p *program) terminal(out io.Writer) tame {
	t := tame{Writer: out}
	if p.shows != nil && p.shows(out) {
		t.colors, t.width = lookup(p.Env, "NO_COLOR") == "", p.columns(out)
	}
	return t
}

// columns returns the width of a terminal; zero if it is not known.
func (p *program) columns(out io.Writer) int {
	if p.width == nil {
		return 0
	}
	return p.width(out)
}

// paint returns a text in a color, if the writer shows colors. The text itself gets no control over the terminal.
func (t tame) paint(color, text string) string {
	text = plain.Escaped(text, "")
	if !t.colors || color == noColor {
		return text
	}
	return color + text + reset
}

// fit returns a text whose lines are no wider than the terminal.
func (t tame) fit(text string) string {
	if t.width == 0 {
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(fitLine(line, t.width))
	}
	return out.String()
}

// fitting writes lines that are no wider than the terminal. Each write has whole lines. Other than tame, it escapes nothing.
type fitting struct{ to tame }

// Write writes lines.
func (f fitting) Write(lines []byte) (int, error) {
	if _, err := io.WriteString(f.to.Writer, f.to.fit(string(lines))); err != nil {
		return 0, err
	}
	return len(lines), nil
}

// leastRoom is the least width of a column that is worth breaking lines for.
const leastRoom = 20

// fitLine breaks a line between words. The next lines begin below the last column, or two columns behind the beginning.
func fitLine(line string, width int) string {
	indent := hangingIndent(line, width)
	var out strings.Builder
	for columnsOf(line) > width {
		at := lastSpace(line, indent, width)
		if at < 0 {
			break
		}
		out.WriteString(strings.TrimRight(line[:at], " ") + "\n")
		line = strings.Repeat(" ", indent) + strings.TrimLeft(line[at:], " ")
	}
	return out.String() + line
}

// hangingIndent returns the indent of the lines after the first one.
func hangingIndent(line string, width int) int {
	text := strings.TrimLeft(colored.ReplaceAllString(line, ""), " ")
	begin := columnsOf(line) - columnsOf(text)
	at := begin + 2
	if i := strings.LastIndex(strings.TrimRight(text, "\n"), "  "); i >= 0 {
		at = begin + columnsOf(text[:i]) + 2
	}
	if at > width-leastRoom {
		return begin + 2
	}
	return at
}

// lastSpace returns the place of the last space between an indent and a width, or of the first one behind them; -1 without any.
func lastSpace(line string, indent, width int) int {
	found, column := -1, 0
	for i := 0; i < len(line); {
		if color := colored.FindStringIndex(line[i:]); color != nil && color[0] == 0 {
			i += color[1]
			continue
		}
		r, size := utf8.DecodeRuneInString(line[i:])
		if r == ' ' && column > indent && (column <= width || found < 0) {
			found = i
		}
		if column > width && found >= 0 {
			break
		}
		column += columns([]rune{r})
		i += size
	}
	return found
}

// columnsOf returns the width of a line on a terminal. Colors have none.
func columnsOf(line string) int {
	return columns([]rune(strings.TrimRight(colored.ReplaceAllString(line, ""), "\n")))
}

// colored finds the colors that this program sets.
var colored = regexp.MustCompile(`\x1b\[[0-9]{1,2}m`)

// Write writes text.
func (t tame) Write(text []byte) (int, error) {
	if _, err := io.WriteString(t.Writer, t.escaped(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

func (t tame) escaped(text string) string {
	const layout = "\n\t"
	if !t.colors {
		return plain.Escaped(text, layout)
	}
	var out strings.Builder
	at := 0
	for _, found := range colored.FindAllStringIndex(text, -1) {
		out.WriteString(plain.Escaped(text[at:found[0]], layout) + text[found[0]:found[1]])
		at = found[1]
	}
	out.WriteString(plain.Escaped(text[at:], layout))
	return out.String()
}
