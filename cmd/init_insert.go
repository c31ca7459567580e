// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// resourceList is the list of resources in the text of an operator.
type resourceList struct {
	// document is the index of its document.
	document int
	node     *yaml.Node
	// end is the index of the line behind the list.
	end int
}

// insertResource appends a resource to the list of resources. All else of the operator stays. The resource is indented by
// two; the list may have another indentation.
func insertResource(operator, resource string) (string, error) {
	lines := linesOf(operator)
	list, err := findResources(operator, lines)
	if err != nil {
		return "", err
	}
	indentation, err := list.indentation(lines)
	if err != nil {
		return "", err
	}
	added := indent(strings.ReplaceAll("\n"+resource, "\n  ", "\n"), indentation)
	added = strings.ReplaceAll(added, "\n", breakOf(lines[0]))

	// Comments at the margin belong to the section behind the list. Blank lines may be a part of the list's last text.
	end := list.end
	for end > 0 && isBetweenSections(lines[end-1]) {
		end--
	}
	for _, at := range []int{end, list.end} {
		before := strings.Join(lines[:at], "")
		if lineBreak := breakOf(lines[0]); !strings.HasSuffix(before, lineBreak) {
			before += lineBreak
		}
		after := before + added + strings.Join(lines[at:], "")
		if list.hasGrown(operator, after) {
			return after, nil
		}
	}
	return "", errors.New("this would change what the operator does now: add it by hand, at the end of resources")
}

// findResources returns the last list of resources: an operator may have several documents.
func findResources(operator string, lines []string) (*resourceList, error) {
	var found *resourceList
	decoder := yaml.NewDecoder(strings.NewReader(operator))
	for document := 0; ; document++ {
		var node yaml.Node
		if err := decoder.Decode(&node); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		fields := node.Content[0].Content // none if it is null
		for i := 0; i+1 < len(fields); i += 2 {
			if fields[i].Value != "resources" {
				continue
			}
			found = &resourceList{document: document, node: fields[i+1], end: len(lines)}
			if i+2 < len(fields) {
				found.end = fields[i+2].Line - 1
			}
		}
	}
	if found == nil {
		return nil, errors.New("it has no resources")
	}
	for i := found.node.Line; i < found.end; i++ {
		if isDocumentMark(lines[i]) {
			found.end = i
		}
	}
	return found, nil
}

// indentation returns the spaces before the dashes of the list.
func (l *resourceList) indentation(lines []string) (string, error) {
	if l.node.Kind == yaml.SequenceNode && l.node.Style&yaml.FlowStyle != 0 {
		return "", errors.New("resources is written in brackets; write it as a list of lines first")
	}
	if l.node.Kind == yaml.SequenceNode {
		// The first field of a resource may be below the dash.
		for i := l.node.Content[0].Line - 1; i >= l.node.Line-1; i-- {
			if item := strings.TrimLeft(lines[i], " "); strings.HasPrefix(item, "-") {
				return strings.TrimSuffix(lines[i], item), nil
			}
		}
	}
	return "", errors.New("resources is not a list of lines; write it as one first")
}

// hasGrown reports whether the list has one more element in after, and nothing else differs.
func (l *resourceList) hasGrown(before, after string) bool {
	old, errOld := decodeAll(before)
	now, errNow := decodeAll(after)
	if errOld != nil || errNow != nil || len(now) != len(old) {
		return false
	}
	fields, _ := now[l.document].(map[string]any)
	list, _ := fields["resources"].([]any)
	if len(list) == 0 {
		return false
	}
	fields["resources"] = slices.Clip(list[:len(list)-1])
	return reflect.DeepEqual(old, now)
}

// decodeAll returns the values of all documents.
func decodeAll(text string) (out []any, err error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		var value any
		if err := decoder.Decode(&value); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		out = append(out, value)
	}
}

// linesOf splits a text after each line break of YAML.
func linesOf(text string) (out []string) {
	for text != "" {
		end := len(text)
		if i := strings.IndexAny(text, "\n\r\u0085\u2028\u2029"); i >= 0 {
			_, size := utf8.DecodeRuneInString(text[i:])
			end = i + size
			if strings.HasPrefix(text[i:], "\r\n") {
				end = i + 2
			}
		}
		out, text = append(out, text[:end]), text[end:]
	}
	return out
}

// breakOf returns the line break at the end of a line.
func breakOf(line string) string {
	switch {
	case strings.HasSuffix(line, "\r\n"):
		return "\r\n"
	case strings.HasSuffix(line, "\r"):
		return "\r"
	default:
		return "\n"
	}
}

// isDocumentMark reports whether a line begins or ends a document.
func isDocumentMark(line string) bool {
	line = strings.TrimRight(line, "\r\n")
	mark, _, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
	return mark == "---" || mark == "..."
}

// isBetweenSections reports whether a line is blank, or a comment at the margin, which belongs to the section after it.
func isBetweenSections(line string) bool {
	return strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#")
}
