// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

//go:build editor

// Package editor holds the published schema against an editor's language server: what it offers, what
// it finds wrong and what it tells of a word. See make test-editor.
package editor

import (
	"encoding/json"
	"path/filepath"
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
	text   string
}

// open opens a document in the editor.
func (s *server) open(text string) document {
	s.t.Helper()
	before, after, _ := strings.Cut(head+text, cursor)
	folder, err := filepath.Abs(".")
	if err != nil {
		s.t.Fatal(err)
	}
	d := document{server: s, uri: "file://" + folder + "/" + strings.NewReplacer("/", "-", " ", "-").Replace(s.t.Name()) + ".yaml"}
	d.text = before + after
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

// offered are what the editor offers at the cursor, with what it tells of each.
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
	_ = json.Unmarshal(documentation, &marked) // it says nothing
	return marked.Value
}

// wrong are what the editor underlines, each with the word that it underlines.
func (d document) wrong() []string {
	d.t.Helper()
	var told struct {
		URI         string
		Diagnostics []struct {
			Message string
			Range   struct{ Start, End position }
		}
	}
	d.await(func(m received) bool {
		return m.Method == "textDocument/publishDiagnostics" && json.Unmarshal(m.Params, &told) == nil && told.URI == d.uri
	})
	var out []string
	for _, one := range told.Diagnostics {
		line := strings.Split(d.text, "\n")[one.Range.Start.Line]
		out = append(out, line[one.Range.Start.Character:min(one.Range.End.Character, len(line))]+": "+one.Message)
	}
	return out
}

// hover is what the editor tells of the word at the cursor.
func (d document) hover() string {
	d.t.Helper()
	var told struct{ Contents json.RawMessage }
	d.request("textDocument/hover", d.place(), &told)
	return said(told.Contents)
}

const child = `
    handlers:
      - id: a
        apply:
          db:
            `

func TestWhatTheEditorOffers(t *testing.T) {
	for name, text := range map[string]string{
		"child": child+"▮\n",
		"child with template": child+"template: {apiVersion: v1, kind: A, metadata: {name: a}}\n            ▮\n",
		"child with forEach": child+"forEach: ${self.a}\n            ▮\n",
		"child with template and forEach": child+"template: {apiVersion: v1, kind: A, metadata: {name: a}}\n            forEach: ${self.a}\n            ▮\n",
		"child with kind": child+"kind: ConfigMap\n            ▮\n",
		"rollout": child+"rollout:\n              ▮\n",
		"ownership": child+"ownership: ▮\n",
		"handler": "    handlers:\n      - ▮\n",
		"handler2": "    handlers:\n      - id: a\n        ▮\n",
		"handler3": "    handlers:\n      - id: a\n        apply:\n          a: {}\n        ▮\n",
		"causes": "    handlers:\n      - id: a\n        causes: [▮]\n",
		"causes2": "    handlers:\n      - id: a\n        causes:\n          - ▮\n",
		"schedule": "    schedule:\n      - ▮\n",
		"resource": "    ▮\n",
		"field": "    schema:\n      kind: A\n      spec:\n        a: ▮\n",
		"openapi": "    schema:\n      kind: A\n      openAPIV3Schema:\n        properties:\n          a:\n            ▮\n",
		"set": "    handlers:\n      - id: a\n        set:\n          ▮\n",
		"steps": "    handlers:\n      - id: a\n        steps:\n          - ▮\n",
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			for k, v := range start(t).open(text).offered() {
				b.WriteString("\n   "+k+": "+strings.ReplaceAll(v, "\n", " ")[:min(len(v), 60)])
			}
			t.Log(b.String())
		})
	}
}

func TestWrong(t *testing.T) {
	for name, text := range map[string]string{
		"includeWehn with template": child+"template: {apiVersion: v1, kind: A, metadata: {name: a}}\n            includeWehn: a\n",
		"includeWehn alone": child+"includeWehn: a\n",
		"includeWehn flat": child+"apiVersion: v1\n            kind: A\n            metadata: {name: a}\n            includeWehn: a\n",
		"includeWhen flat": child+"apiVersion: v1\n            kind: A\n            metadata: {name: a}\n            includeWhen: a\n",
		"ownd": child+"template: {apiVersion: v1, kind: A, metadata: {name: a}}\n            ownership: ownd\n",
		"ownd, no template": child+"ownership: ownd\n",
		"schedule when": "    schedule:\n      - id: a\n        every: 10s\n        when: a\n        log: {message: a}\n",
		"no action": "    handlers:\n      - id: a\n        when: a\n",
		"two action": "    handlers:\n      - id: a\n        log: {message: a}\n        call: a.B\n",
		"nothing under resource": "    resync: 10s\n",
		"percent": child+"template: {apiVersion: v1, kind: A, metadata: {name: a}}\n            rollout: {maxUnavailable: a}\n",
		"good": child+"template: {apiVersion: v1, kind: A, metadata: {name: a}}\n",
		"forEach num": child+"template: {apiVersion: v1, kind: A, metadata: {name: a}}\n            forEach: 7\n",
		"field": "    schema:\n      kind: A\n      spec:\n        a: 7\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Log("\n"+strings.Join(start(t).open(text).wrong(), "\n"))
		})
	}
}

func TestHover(t *testing.T) {
	for name, text := range map[string]string{
		"ownership": child+"template: {apiVersion: v1, kind: A, metadata: {name: a}}\n            own▮ership: owned\n",
		"causes": "    handlers:\n      - id: a\n        cau▮ses: [create]\n        log: {message: a}\n",
		"apply": "    handlers:\n      - id: a\n        app▮ly: {}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Log("\n"+start(t).open(text).hover())
		})
	}
}
