// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package likeness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// row is a case of the table.
type row struct {
	// Name is a sentence.
	Name string `json:"name"`
	// Steps are requests in their order.
	Steps []step `json:"steps"`
	// Differs is why the answers of the two servers differ. Empty means that they are alike.
	Differs string `json:"differs"`

	topic  string // of the file
	number int
}

// step is a request.
type step struct {
	// method, path and body are those of the request. The body is empty if the request has none.
	method, path, body string

	// As is what the body is: merge, json, strategic or apply for patches, yaml for an object, or a media type. The
	// default is JSON.
	As string `json:"as"`
	// Accept is the media type that the client takes; the default is JSON.
	Accept string `json:"accept"`
	// User sends the request instead of the administrator.
	User string `json:"user"`
	// Headers are sent beside those of the other fields.
	Headers map[string]string `json:"headers"`
	// Keep takes values of the answer, by paths such as metadata.uid. Later steps have them by these names, as in $name.
	Keep map[string]string `json:"keep"`
	// Until repeats the request until its answer is so. A condition is a status code, or values by paths.
	Until *condition `json:"until"`
	// Events is how many events are read of a watch; 0 means all until the server ends it.
	Events int `json:"events"`
	// Show limits what is compared of a body to these paths, and Hide takes some away. A path goes into all items of
	// lists.
	Show []string `json:"show"`
	Hide []string `json:"hide"`
	// Unwarned leaves out the warnings. It is for steps of which another row says that warnings differ.
	Unwarned bool `json:"unwarned"`
}

// condition is what a step waits for.
type condition struct {
	code   int
	values map[string]any
}

// UnmarshalJSON reads a status code or values.
func (c *condition) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &c.code) == nil {
		return nil
	}
	return json.Unmarshal(data, &c.values)
}

// request is the form of the key that has the method and the path.
var request = regexp.MustCompile(`^([A-Z]+) (\S+)$`)

// UnmarshalJSON reads a step. Its request is the key with a method.
func (s *step) UnmarshalJSON(data []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	for key, body := range fields {
		if found := request.FindStringSubmatch(key); found != nil {
			s.method, s.path, s.body = found[1], found[2], string(body)
			delete(fields, key)
		}
	}
	if s.method == "" {
		return fmt.Errorf("a step has no request: %s", data)
	}
	if s.body == "null" {
		s.body = ""
	}
	if text := ""; json.Unmarshal([]byte(s.body), &text) == nil {
		s.body = text
	}
	rest, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	type plain step
	decoder := json.NewDecoder(bytes.NewReader(rest))
	decoder.DisallowUnknownFields()
	return decoder.Decode((*plain)(s))
}

// String is the request of a step as the table has it.
func (s *step) String() string { return s.method + " " + s.path }

// read returns the rows of all files.
func read(t *testing.T) (out []row) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var rows []row
		if err := yaml.UnmarshalStrict(text, &rows); err != nil {
			t.Fatalf("reading %s: %v", file, err)
		}
		for _, r := range rows {
			r.topic, r.number = strings.TrimSuffix(filepath.Base(file), ".yaml"), len(out)+1
			out = append(out, r)
		}
	}
	return out
}

// mentions reports whether a row has a word, such as $ns.
func (r row) mentions(words ...string) bool {
	for _, s := range r.Steps {
		for _, word := range words {
			if strings.Contains(s.path, word) || strings.Contains(s.body, word) {
				return true
			}
		}
	}
	return false
}
