// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

//go:build editor

// Package editor holds the published schema against the language server that editors use: what it offers,
// what it finds wrong, and its documentation of a word. make test-editor runs it.
package editor

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// head is what stands above what is edited; its first line is what users write.
const head = `# yaml-language-server: $schema=../../docs/operator.schema.json
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: demo}
resources:
  - resource: foos.v1.example.com
`

// child is what stands above the options of a child.
const child = `
    handlers:
      - id: a
        apply:
          db:
            `

// template is a whole child in the long form.
const template = child + `template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
            `

// cursor is where the cursor stands in a text.
const cursor = "▮"

type position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

// document is an open one.
type document struct {
	*server
	uri    string
	cursor position
	lines  []string
}

// open opens a document in the editor, which begins with the head of an operator.
func (s *server) open(text string) document {
	s.t.Helper()
	return s.openWhole(head + text)
}

// openWhole opens a document in the editor.
func (s *server) openWhole(text string) document {
	s.t.Helper()
	before, after, _ := strings.Cut(text, cursor)
	folder, err := filepath.Abs(".")
	if err != nil {
		s.t.Fatal(err)
	}
	s.ids++
	d := document{server: s, uri: fmt.Sprintf("file://%s/%d.yaml", folder, s.ids), lines: strings.Split(before+after, "\n")}
	d.cursor.Line = strings.Count(before, "\n")
	d.cursor.Character = len([]rune(before[strings.LastIndex(before, "\n")+1:]))
	s.send(message{Method: "textDocument/didOpen", Params: map[string]any{"textDocument": map[string]any{
		"uri": d.uri, "languageId": "yaml", "version": 1, "text": before + after,
	}}})
	return d
}

func (d document) place() map[string]any {
	return map[string]any{"textDocument": map[string]any{"uri": d.uri}, "position": d.cursor}
}

// offered are what the editor offers at the cursor, each with its documentation.
func (d document) offered() map[string]string {
	d.t.Helper()
	var list struct {
		Items []struct {
			Label         string
			Documentation json.RawMessage
		}
	}
	d.request("textDocument/completion", d.place(), &list)
	out := map[string]string{}
	for _, item := range list.Items {
		out[item.Label] = said(item.Documentation)
	}
	return out
}

// said is a text, or a map with one under value.
func said(documentation json.RawMessage) string {
	var text string
	if json.Unmarshal(documentation, &text) == nil {
		return text
	}
	var marked struct{ Value string }
	_ = json.Unmarshal(documentation, &marked) // otherwise it says nothing
	return marked.Value
}

// wrong are what the editor underlines: the line that it begins in, and the message.
func (d document) wrong() []string {
	d.t.Helper()
	var published struct {
		URI         string
		Diagnostics []struct {
			Message string
			Range   struct{ Start position }
		}
	}
	d.await(func(m received) bool {
		return m.Method == "textDocument/publishDiagnostics" && json.Unmarshal(m.Params, &published) == nil && published.URI == d.uri
	})
	var out []string
	for _, one := range published.Diagnostics {
		out = append(out, strings.TrimSpace(d.lines[one.Range.Start.Line][one.Range.Start.Character:])+": "+one.Message)
	}
	return out
}

// hover is the editor's documentation of the word at the cursor.
func (d document) hover() string {
	d.t.Helper()
	var answer struct{ Contents json.RawMessage }
	d.request("textDocument/hover", d.place(), &answer)
	return strings.ReplaceAll(said(answer.Contents), `\`, "")
}

func TestWhatTheEditorOffers(t *testing.T) {
	options := map[string]string{
		"forEach": "A list or a map", "includeWhen": "the child is taken away", "readyWhen": "When the child is ready",
		"ownership": "an owner reference", "rollout": "how changed children are updated", "adopt": "is taken over",
		"onDelete": "What becomes of a child", "limit": "the most elements", "key": "identifies an element",
	}
	itself := map[string]string{"apiVersion": "version of its kind", "metadata": "Its name at least"}
	tests := map[string]struct {
		text string
		want map[string]string
		not  []string
	}{
		"the options of a child":       {child + cursor, options, nil},
		"the template of a child":      {child + cursor, map[string]string{"template": "The child itself"}, nil},
		"or the child itself":          {child + cursor, itself, nil},
		"options beside a template":    {template + cursor, options, []string{"apiVersion", "kind"}},
		"what goes with forEach":       {child + "forEach: ${self.spec.users}\n            " + cursor, map[string]string{"key": "identifies an element", "limit": "the most", "template": "The child itself"}, []string{"apiVersion"}},
		"no options beside a kind":     {child + "kind: ConfigMap\n            " + cursor, itself, []string{"forEach", "ownership", "template"}},
		"the words of an option":       {child + "ownership: " + cursor, map[string]string{"owned": "an owner reference", "labelled": "in another namespace", "none": "applied and forgotten"}, nil},
		"the fields of a rollout":      {template + "rollout:\n              " + cursor, map[string]string{"maxUnavailable": "How many children may be unready", "readyWhen": "When an updated child is ready"}, nil},
		"the metadata of a child":      {child + "apiVersion: v1\n            kind: ConfigMap\n            metadata:\n              " + cursor, map[string]string{"name": "Its name"}, nil},
		"the keys of a handler":        {"    handlers:\n      - " + cursor, map[string]string{"id": "The name of the handler", "causes": "What makes the handler run", "when": "While it is false", "apply": "Keep children", "set": "Set fields", "steps": "Several actions", "retries": "How many times"}, nil},
		"those that are not there yet": {"    handlers:\n      - id: a\n        apply:\n          db: {}\n        " + cursor, map[string]string{"causes": "What makes the handler run"}, []string{"id"}},
		"causes":                       {"    handlers:\n      - id: a\n        causes: [" + cursor + "]", map[string]string{"create": "create: ", "update": "", "delete": "delete: ", "resume": "", "resync": "", "child": "", "related": "", "timer": "", "event": "", "reconcile": "reconcile is short for"}, nil},
		"the keys of a schedule":       {"    schedule:\n      - " + cursor, map[string]string{"every": "with this period", "cron": "minute, hour", "log": "Write a line"}, []string{"when", "causes", "apply", "set"}},
		"a resource":                   {"    " + cursor, map[string]string{"handlers": "What to do for each object", "schedule": "by time", "owns": "children", "schema": "The schema of a resource"}, nil},
		"what is set":                  {"    handlers:\n      - id: a\n        set:\n          " + cursor, map[string]string{"status": "Fields of the status", "conditions": "kept by the API conventions"}, nil},
		"a schema of Kubernetes":       {"    schema:\n      kind: A\n      openAPIV3Schema:\n        properties:\n          spec:\n            " + cursor, map[string]string{"type": "", "x-kubernetes-list-type": ""}, nil},
	}
	s := start(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			offered := s.of(t).open(test.text + "\n").offered()
			offers(t, offered, test.want, test.not)
		})
	}
}

func TestWhatTheEditorFindsWrong(t *testing.T) {
	handler := func(text string) string { return "    handlers:\n      - {id: a, " + text + "}\n" }
	tests := map[string]struct {
		text string
		want []string
	}{
		"nothing":                       {template + "includeWhen: self.spec.on\n", nil},
		"an option that is mistyped":    {template + "includeWehn: self.spec.on", []string{"includeWehn: self.spec.on: Property includeWehn is not allowed."}},
		"an option of a wrong word":     {template + "ownership: ownd", []string{`ownd: Value is not accepted. Valid values: "owned", "labelled", "none".`}},
		"an option of a wrong kind":     {template + "forEach: 7", []string{`7: Incorrect type. Expected "string | array | object(options)".`}},
		"a rollout without its field":   {template + "rollout: {readyWhen: 'true'}", []string{`rollout: {readyWhen: 'true'}: Missing property "maxUnavailable".`}},
		"a schedule with when":          {"    schedule:\n      - {id: a, every: 10s, when: self.spec.on, log: {message: a}}", []string{"when: self.spec.on, log: {message: a}}: Property when is not allowed."}},
		"an unknown cause":              {handler("causes: [craete], log: {message: a}"), []string{`craete], log: {message: a}}: Value is not accepted. Valid values: "child", "create", "delete", "event", "index", "reconcile", "related", "resume", "resync", "timer", "update".`}},
		"a cause that is there twice":   {handler("causes: [create, create], log: {message: a}"), []string{"[create, create], log: {message: a}}: Array has duplicate items."}},
		"two actions":                   {handler("log: {message: a}, call: a.B"), []string{"{id: a, log: {message: a}, call: a.B}: Matches multiple schemas when only one must validate."}},
		"an invalid duration":           {handler("timeout: soon, log: {message: a}"), []string{"soon, log: {message: a}}: want a duration such as 30s or 10m"}},
		"an option beside the child":    {child + "apiVersion: v1\n            kind: ConfigMap\n            metadata: {name: a}\n            includeWhen: 'true'", []string{"apiVersion: v1: Matches a schema that is not allowed."}},
		"a resource without handlers":   {"    workers: 4", []string{`resource: foos.v1.example.com: Missing property "handlers".`}},
		"a field that is of wrong kind": {"    schedule: [{id: a, every: 10s, log: {message: a}}]\n    schema:\n      kind: A\n      spec: {a: 7}", []string{`7}: Incorrect type. Expected "string | fields".`}},
	}
	s := start(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if wrong := s.of(t).open(test.text + "\n").wrong(); !slices.Equal(wrong, test.want) {
				t.Errorf("it finds\n%s\nwant\n%s", strings.Join(wrong, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestTheEditorShowsDocumentation(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"of an option":    {template + "owner" + cursor + "ship: owned", "labelled: a label, and a line in the owner's inventory"},
		"of a field":      {"    handlers:\n      - id: a\n        cau" + cursor + "ses: [create]", "What makes the handler run."},
		"of a word":       {"    handlers:\n      - id: a\n        causes: [cre" + cursor + "ate]", "create: "},
		"of an action":    {"    handlers:\n      - id: a\n        app" + cursor + "ly: {}", "Keep children of the object as their templates say"},
		"of a timer":      {"    schedule:\n      - id: a\n        ev" + cursor + "ery: 10s", "Run again and again, with this period"},
		"of a short form": {"    schema:\n      kind: A\n      sp" + cursor + "ec: {}", "A field is its type and, behind a bar, markers"},
	}
	s := start(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := s.of(t).open(test.text + "\n").hover(); !strings.Contains(got, test.want) {
				t.Errorf("it shows %q, want %q", got, test.want)
			}
		})
	}
}

// offers fails the test unless the editor offers the wanted words, each with a part of its text, and not the others.
func offers(t *testing.T, offered, want map[string]string, not []string) {
	t.Helper()
	for word, text := range want {
		if got, is := offered[word]; !is || !strings.Contains(got, text) {
			t.Errorf("%s is offered: %v, with the text %q, want %q", word, is, got, text)
		}
	}
	for _, word := range not {
		if _, is := offered[word]; is {
			t.Errorf("%s is offered", word)
		}
	}
}
