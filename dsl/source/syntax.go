// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl/form"
)

// Documents returns the roots of the documents that are not empty, and a syntax error. It reads no documents after
// a syntax error.
func (s *Text) Documents() (roots []*yaml.Node, fault *Fault) {
	decoder := yaml.NewDecoder(strings.NewReader(s.text))
	for {
		document, err := next(decoder)
		if errors.Is(err, io.EOF) {
			return roots, nil
		}
		if err != nil {
			return roots, s.syntax(err)
		}
		if root := document.Content[0]; !form.IsNull(root) {
			roots = append(roots, root)
		}
	}
}

// next reads a document. It recovers from panics of the parser, which some unusual texts cause.
func next(decoder *yaml.Decoder) (document *yaml.Node, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("yaml: the parser gave up")
		}
	}()
	document = &yaml.Node{}
	err = decoder.Decode(document)
	return document, err
}

var (
	lineMessage   = regexp.MustCompile(`^line (\d+): (.*)$`)
	anchorMessage = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
)

// offByOne are the parser's messages whose line is one too low.
var offByOne = []string{
	"did not find expected <document start>",
	"did not find expected node content",
	"did not find expected '-' indicator",
	"did not find expected key",
	"did not find expected ',' or ']'",
	"did not find expected ',' or '}'",
	"found undefined tag handle",
	"found incompatible YAML document",
	"found duplicate %YAML directive",
	"found duplicate %TAG directive",
}

// syntax converts an error of the YAML parser, which is only text, to a fault.
func (s *Text) syntax(err error) *Fault {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	if m := anchorMessage.FindStringSubmatch(message); m != nil {
		line, column := s.alias(m[1])
		return &Fault{File: s.Name, Line: line, Column: column, Message: fmt.Sprintf("unknown anchor %s", form.Quoted(m[1]))}
	}
	line := 1
	if m := lineMessage.FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1])
		message = m[2]
		if slices.Contains(offByOne, message) {
			line++
		}
	}
	line = min(max(line, 1), len(s.lines))
	if at := strings.IndexByte(indentation(s.lines[line-1]), '\t'); at >= 0 {
		return &Fault{File: s.Name, Line: line, Column: at + 1, Message: "a tab must not indent YAML; use spaces"}
	}
	end := s.reached()
	for n := line; n <= max(line, min(end, len(s.lines))); n++ {
		if at, cure := unquoted(s.lines[n-1], message); cure != "" {
			return &Fault{File: s.Name, Line: n, Column: utf8.RuneCountInString(s.lines[n-1][:at]) + 1, Message: "invalid YAML: " + message + cure}
		}
	}
	if slices.Contains(offByOne, message) && end > line {
		message += fmt.Sprintf(" (begun here, at fault before the end of line %d)", end)
	}
	return &Fault{File: s.Name, Line: line, Column: 1, Message: "invalid YAML: " + message + remedy(message)}
}

// remedy returns advice for a common mistake.
func remedy(message string) string {
	if message == "mapping values are not allowed in this context" {
		return " (does a text with ': ' in it lack quotes?)"
	}
	return ""
}

// alias finds the use of an unknown anchor: the last use that the parser has read.
func (s *Text) alias(name string) (line, column int) {
	word := regexp.MustCompile(`\*` + regexp.QuoteMeta(name) + `([^-\w]|$)`)
	read := s.read()
	for i, r := range slices.Backward(read) {
		if found := word.FindAllStringIndex(r, -1); found != nil {
			return i + 1, utf8.RuneCountInString(r[:found[len(found)-1][0]]) + 1
		}
	}
	return 1, 1
}

// reached returns the last line with content that the parser has read. The parser does not say where a block
// becomes wrong; this is close.
func (s *Text) reached() int {
	read := s.read()
	for n := len(read); n > 0; n-- {
		if text := strings.TrimSpace(read[n-1]); text != "" && !strings.HasPrefix(text, "#") {
			return n
		}
	}
	return 1
}

// read returns the lines that the parser has read.
func (s *Text) read() []string {
	input := &slowReader{text: s.text}
	decoder := yaml.NewDecoder(input)
	for {
		if _, err := next(decoder); err != nil {
			return lines(s.text[:input.read])
		}
	}
}

// slowReader returns its text byte by byte, so that its position is that of the parser.
type slowReader struct {
	text string
	read int
}

// Read reads a byte.
func (r *slowReader) Read(p []byte) (int, error) {
	if r.read == len(r.text) {
		return 0, io.EOF
	}
	n := copy(p[:1], r.text[r.read:])
	r.read += n
	return n, nil
}

func indentation(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " \t"))] }
