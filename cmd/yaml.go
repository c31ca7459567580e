// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"
)

// answerYAML writes a value as YAML, with the names and in the order of its JSON.
func answerYAML(out io.Writer, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	from := json.NewDecoder(bytes.NewReader(data))
	from.UseNumber()
	tree, err := yamlOf(from)
	if err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	var text bytes.Buffer // the encoder may end a write within a character
	to := yaml.NewEncoder(&text)
	to.SetIndent(2)
	if err := errors.Join(to.Encode(tree), to.Close()); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	_, err = out.Write(text.Bytes())
	return err
}

// yamlOf makes a tree of the next value. To read the JSON as YAML, which it mostly is, would fail at characters that YAML wants escaped.
func yamlOf(from *json.Decoder) (*yaml.Node, error) {
	token, err := from.Token()
	if err != nil {
		return nil, err
	}
	out := &yaml.Node{}
	switch token := token.(type) {
	case json.Delim:
		if out.Kind = yaml.MappingNode; token == '[' {
			out.Kind = yaml.SequenceNode
		}
		for from.More() { // of a map, keys and values alternate
			below, err := yamlOf(from)
			if err != nil {
				return nil, err
			}
			out.Content = append(out.Content, below)
		}
		_, err = from.Token() // its end
		return out, err
	case string:
		return yamlText(token), nil
	case json.Number:
		out.Kind, out.Value = yaml.ScalarNode, token.String()
		return out, nil
	}
	return out, out.Encode(token)
}

// yamlText is a text, in double quotes if it has characters that other styles lose.
func yamlText(text string) *yaml.Node {
	out := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	odd := func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }
	if strings.ContainsFunc(text, odd) || strings.TrimSpace(text) != text {
		out.Style = yaml.DoubleQuotedStyle
	}
	return out
}
