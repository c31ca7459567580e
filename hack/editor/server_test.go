// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

//go:build editor

package editor

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/textproto"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// server is a YAML language server, as editors talk to it.
type server struct {
	t   *testing.T
	in  io.Writer
	out *textproto.Reader
	ids int
}

// message is one of the Language Server Protocol: a request, a notification or an answer.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  any             `json:"result,omitempty"`
}

// received is a message whose content is not read yet.
type received struct {
	ID             json.RawMessage
	Method         string
	Params, Result json.RawMessage
	Error          *struct{ Message string }
}

// start runs the language server that make test-editor installs.
func start(t *testing.T) *server {
	t.Helper()
	script, err := filepath.Abs("../../bin/editor/node_modules/yaml-language-server/bin/yaml-language-server")
	if err != nil {
		t.Fatal(err)
	}
	// The context ends it before the test does.
	cmd := exec.CommandContext(t.Context(), "node", script, "--stdio")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting the language server: %v (make test-editor installs it)", err)
	}
	// A server that says nothing ends, and so does the wait for what it says.
	late := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		late.Stop()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s := &server{t: t, in: in, out: textproto.NewReader(bufio.NewReader(out))}
	s.request("initialize", map[string]any{
		"processId": nil, "rootUri": nil,
		"capabilities": map[string]any{"textDocument": map[string]any{
			"completion": map[string]any{"completionItem": map[string]any{"documentationFormat": []string{"markdown"}}},
			"hover":      map[string]any{"contentFormat": []string{"markdown"}},
		}},
	}, nil)
	s.send(message{Method: "initialized", Params: map[string]any{}})
	s.send(message{Method: "workspace/didChangeConfiguration", Params: map[string]any{"settings": map[string]any{"yaml": map[string]any{
		"validate": true, "completion": true, "hover": true, "schemaStore": map[string]any{"enable": false},
	}}}})
	return s
}

// of is the server for a test within a test.
func (s *server) of(t *testing.T) *server {
	s.t = t
	return s
}

// request asks and waits for the answer; what comes in between is dropped.
func (s *server) request(method string, params, answer any) {
	s.t.Helper()
	s.ids++
	id := strconv.Itoa(s.ids)
	s.send(message{ID: json.RawMessage(id), Method: method, Params: params})
	m := s.await(func(m received) bool { return m.Method == "" && string(m.ID) == id })
	if m.Error != nil {
		s.t.Fatalf("%s: %s", method, m.Error.Message)
	}
	if answer != nil && len(m.Result) > 0 {
		if err := json.Unmarshal(m.Result, answer); err != nil {
			s.t.Fatalf("reading the answer to %s: %v", method, err)
		}
	}
}

// await reads messages until there is the one that is wanted. Requests of the server are answered with nothing.
func (s *server) await(wanted func(received) bool) received {
	s.t.Helper()
	for {
		m := s.read()
		switch {
		case wanted(m):
			return m
		case m.Method != "" && m.ID != nil:
			s.send(message{ID: m.ID, Result: json.RawMessage("null")})
		}
	}
}

func (s *server) send(m message) {
	s.t.Helper()
	m.Version = "2.0"
	data, err := json.Marshal(m)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(s.in, "Content-Length: %d\r\n\r\n%s", len(data), data); err != nil {
		s.t.Fatalf("writing to the language server: %v", err)
	}
}

func (s *server) read() received {
	s.t.Helper()
	header, err := s.out.ReadMIMEHeader()
	if err != nil {
		s.t.Fatalf("reading from the language server: %v", err)
	}
	length, err := strconv.Atoi(header.Get("Content-Length"))
	if err != nil {
		s.t.Fatalf("reading from the language server: %v", err)
	}
	data := make([]byte, length)
	if _, err := io.ReadFull(s.out.R, data); err != nil {
		s.t.Fatalf("reading from the language server: %v", err)
	}
	var m received
	if err := json.Unmarshal(data, &m); err != nil {
		s.t.Fatalf("reading from the language server: %v", err)
	}
	return m
}
