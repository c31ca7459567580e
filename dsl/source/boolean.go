// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Boolean reports whether a node is a word such as yes or off, and what kubectl and the API server read it as. They read
// YAML 1.1, in which it is a boolean unless it is in quotes; in later versions it is a text.
func Boolean(n *yaml.Node) (value, is bool) {
	if n.Kind != yaml.ScalarNode || n.Style != 0 || n.Tag != "!!str" {
		return false, false
	}
	switch n.Value {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
		return true, true
	case "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return false, true
	}
	return false, false
}

// mostBooleans is how many words an advice names.
const mostBooleans = 3

// BooleanAdvice returns advice about an error of the API server for objects of a file: that it has words which were read
// as booleans. It is empty for a file without them, and for an error of something else.
func BooleanAdvice(file string, err error) string {
	said := err.Error()
	if !slices.ContainsFunc([]string{"bool", "Value:true", "Value:false"}, func(part string) bool { return strings.Contains(said, part) }) {
		return ""
	}
	data, err := ReadFile(file)
	if err != nil {
		return "" // whoever has read it before gets this error, too
	}
	var words []string
	for documents := yaml.NewDecoder(strings.NewReader(string(data))); ; {
		var document yaml.Node
		if documents.Decode(&document) != nil {
			break
		}
		words = append(words, booleansIn(&document)...)
	}
	if len(words) == 0 {
		return ""
	}
	if len(words) > mostBooleans {
		words = append(words[:mostBooleans], "…")
	}
	return "; in YAML of Kubernetes a word without quotes is a boolean: " + strings.Join(words, ", ")
}

// booleansIn says which words below a node are booleans, and in which lines.
func booleansIn(n *yaml.Node) (out []string) {
	if value, is := Boolean(n); is {
		return []string{fmt.Sprintf("%s in line %d is %v", n.Value, n.Line, value)}
	}
	for _, each := range n.Content {
		out = append(out, booleansIn(each)...)
	}
	return out
}
