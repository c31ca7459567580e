// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

//go:build editor

package editor

import (
	"slices"
	"strings"
	"testing"
)

// partHead is what stands above the action of a part; its first line is what users write.
const partHead = `# yaml-language-server: $schema=../../docs/part.schema.json
apiVersion: handwerk.dev/v1alpha1
kind: Part
parameters: {name: string | required=true}
`

func TestWhatTheEditorOffersInAPart(t *testing.T) {
	tests := map[string]struct {
		text string
		want map[string]string
		not  []string
	}{
		"the keys of a part": {partHead + cursor, map[string]string{
			"doc": "what the part does", "let": "Named expressions", "apply": "Keep children", "set": "Set fields", "steps": "Several actions", "use": "stands for the action", "with": "The parameters of the Go function",
		}, []string{"id", "causes", "when", "resources", "metadata", "parameters"}},
		"the options of a child": {partHead + "apply:\n  db:\n    " + cursor, map[string]string{"forEach": "A list or a map", "template": "The child itself"}, nil},
		"the keys of a step":     {partHead + "steps:\n  - " + cursor, map[string]string{"name": "The name of the step", "log": "Write a line", "use": "stands for the action"}, []string{"id", "causes", "steps"}},
		"a use":                  {head + "    handlers:\n      - id: a\n        use:\n          " + cursor, map[string]string{"file": "The file of the part", "as": "stands before those of the children", "with": "The values of the part's parameters"}, nil},
		"a use in a part":        {partHead + "use:\n  " + cursor, map[string]string{"file": "The file of the part", "as": "stands before"}, nil},
	}
	s := start(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			offered := s.of(t).openWhole(test.text + "\n").offered()
			offers(t, offered, test.want, test.not)
		})
	}
}

func TestWhatTheEditorFindsWrongInAPart(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string
	}{
		"nothing":                      {partHead + "apply: {web: {apiVersion: v1, kind: ConfigMap, metadata: {name: \"${name}\"}}}", nil},
		"nothing in steps":             {partHead + "steps: [{log: {message: a}}, {use: {file: parts/b.yaml, as: b, with: {name: \"${name}\"}}}]", nil},
		"a key that is mistyped":       {partHead + "aply: {}\nlog: {message: a}", []string{"aply: {}: Property aply is not allowed."}},
		"what belongs to the handler":  {partHead + "causes: [create]\nlog: {message: a}", []string{"causes: [create]: Property causes is not allowed."}},
		"two actions":                  {partHead + "log: {message: a}\ncall: a.B", []string{"apiVersion: handwerk.dev/v1alpha1: Matches multiple schemas when only one must validate."}},
		"an operator":                  {strings.Replace(partHead, "kind: Part", "kind: Operator", 1) + "log: {message: a}", []string{`Operator: Value is not accepted. Valid values: "Part".`}},
		"a parameter without its type": {strings.Replace(partHead, "string | required=true", "7", 1) + "log: {message: a}", []string{`7}: Incorrect type. Expected "string".`}},
		"no parameters":                {strings.Replace(partHead, "{name: string | required=true}", "{}", 1) + "log: {message: a}", []string{"{}: Object has fewer properties than the required number of 1"}},
		"a use without its file":       {head + "    handlers:\n      - {id: a, use: {as: a}}", []string{`use: {as: a}}: Missing property "file".`}},
	}
	s := start(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if wrong := s.of(t).openWhole(test.text + "\n").wrong(); !slices.Equal(wrong, test.want) {
				t.Errorf("it finds\n%s\nwant\n%s", strings.Join(wrong, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestTheEditorShowsDocumentationOfAPart(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"of its parameters": {strings.Replace(partHead, "parameters", "para"+cursor+"meters", 1) + "log: {message: a}", "which the expressions of the part know as variables"},
		"of its action":     {partHead + "app" + cursor + "ly: {}", "Keep children of the object as their templates say"},
		"of a use":          {head + "    handlers:\n      - id: a\n        use: {fi" + cursor + "le: parts/a.yaml}", "as a path from the directory of the configuration"},
	}
	s := start(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := s.of(t).openWhole(test.text + "\n").hover(); !strings.Contains(got, test.want) {
				t.Errorf("it shows %q, want %q", got, test.want)
			}
		})
	}
}
