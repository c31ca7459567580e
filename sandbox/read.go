// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/handwerk-dev/handwerk/dsl/source"
)

// fileObject is an object of a file. An item of a list is an object.
type fileObject struct {
	*unstructured.Unstructured

	document document
	// item is the number of the item from 1; 0 if the document is the object.
	item int
}

// document is one of the documents of a file.
type document struct {
	file string
	// number counts the documents of the file from 1; of is how many there are.
	number, of int
	// line is the first line with content, from 1.
	line int
	text []byte
}

// ReadDump reads the objects of files as [Sandbox.LoadFiles] does, and of an input, for which the name "-" stands. A dump of a cluster may
// be large, so the files have no limit. The error has all faults with their places.
func ReadDump(paths []string, input io.Reader) (out []*unstructured.Unstructured, err error) {
	found, errs := readObjects(paths, input, texts{os.ReadFile, io.ReadAll})
	for _, o := range found {
		out = append(out, o.Unstructured)
	}
	return out, errors.Join(errs...)
}

// texts reads the texts of files and of the input.
type texts struct {
	file  func(name string) ([]byte, error)
	input func(io.Reader) ([]byte, error)
}

// limitedTexts are texts that are no larger than a configuration may be.
func limitedTexts() texts { return texts{source.ReadFile, source.ReadInput} }

// readObjects reads the objects of files, and of those in folders. The name "-" stands for the input. It returns all errors.
func readObjects(paths []string, input io.Reader, from texts) (out []fileObject, errs []error) {
	for _, path := range paths {
		names, err := filesAt(path)
		if err != nil {
			errs = append(errs, fmt.Errorf("loading %s: %w", path, cause(err)))
		}
		for _, name := range names {
			objects, faults := readFile(name, input, from)
			out, errs = append(out, objects...), append(errs, faults...)
		}
	}
	return out, errs
}

// filesAt returns a path itself, or the YAML and JSON files of a folder.
func filesAt(path string) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, entry := range entries {
		name, extension := entry.Name(), filepath.Ext(entry.Name())
		if slices.Contains([]string{".yaml", ".yml", ".json"}, extension) && !strings.HasPrefix(name, ".") && !source.IsCases(name) {
			out = append(out, filepath.Join(path, name))
		}
	}
	if len(out) == 0 {
		return nil, errors.New("the folder has no *.yaml, *.yml or *.json file")
	}
	return out, nil
}

// readFile reads the objects of a file.
func readFile(name string, input io.Reader, from texts) (out []fileObject, errs []error) {
	var err error
	var data []byte
	switch {
	case name != "-":
		data, err = from.file(name)
	case input == nil:
		err = errors.New("there is no input")
	default:
		name = "standard input"
		data, err = from.input(input)
	}
	if err != nil {
		return nil, []error{fmt.Errorf("loading %s: %w", name, cause(err))}
	}
	for _, d := range documentsIn(name, data) {
		objects, err := d.objects()
		if err != nil {
			errs = append(errs, err)
		}
		out = append(out, objects...)
	}
	return out, errs
}

// documentsIn splits a text into its documents, which are values of JSON, or YAML between lines of three dashes.
func documentsIn(file string, data []byte) (out []document) {
	add := func(line int, text []byte) {
		for !bytes.HasPrefix(text, []byte("{")) { // blank lines, comments and directives
			first, rest, more := bytes.Cut(text, []byte("\n"))
			if content := bytes.TrimSpace(first); len(content) > 0 && !bytes.ContainsAny(content[:1], "#%") {
				break
			}
			if !more {
				return
			}
			text, line = rest, line+1
		}
		out = append(out, document{file: file, line: line, text: text})
	}
	if !eachJSON(data, add) {
		out = nil
		eachYAML(data, add)
	}
	for i := range out {
		out[i].number, out[i].of = i+1, len(out)
	}
	return out
}

// eachJSON calls add for each value of a text with its line. It is false if the text is not JSON.
func eachJSON(data []byte, add func(line int, text []byte)) bool {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return false
	}
	line, end := 1, int64(0)
	for in := json.NewDecoder(bytes.NewReader(data)); ; {
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return errors.Is(err, io.EOF)
		}
		begin := in.InputOffset() - int64(len(value))
		line += bytes.Count(data[end:begin], []byte("\n"))
		add(line, value)
		line, end = line+bytes.Count(value, []byte("\n")), in.InputOffset()
	}
}

// eachYAML calls add for each document of a text with its first line.
func eachYAML(data []byte, add func(line int, text []byte)) {
	begin, first, line := 0, 1, 1
	for at := 0; at < len(data); line++ {
		end := at + bytes.IndexByte(data[at:], '\n') + 1
		if end == at {
			end = len(data)
		}
		if text := bytes.TrimRight(data[at:end], "\r\n"); bytes.Equal(text, []byte("---")) || bytes.HasPrefix(text, []byte("--- ")) {
			add(first, data[begin:at])
			if begin, first = end, line+1; len(text) > 3 { // the document may begin in this line
				begin, first = at+3, line
			}
		}
		at = end
	}
	add(first, data[begin:])
}

// objects returns the objects of a document; none if it is empty.
func (d document) objects() ([]fileObject, error) {
	text := d.text
	if !json.Valid(text) {
		var err error
		// The blank lines let an error have the line of the file.
		if text, err = yaml.YAMLToJSONStrict(append(bytes.Repeat([]byte("\n"), d.line-1), text...)); err != nil {
			return nil, fmt.Errorf("loading %s: %s", d.file, strings.ReplaceAll(err.Error(), "\n  ", " "))
		}
	}
	var tree any
	if err := utiljson.Unmarshal(text, &tree); err != nil {
		return nil, fmt.Errorf("loading %s:%d: %w", d.file, d.line, err)
	}
	if tree == nil {
		return nil, nil
	}
	object, is := tree.(map[string]any)
	if !is {
		return nil, fmt.Errorf("loading %s:%d: the document is not an object", d.file, d.line)
	}
	o := &unstructured.Unstructured{Object: object}
	items, list := object["items"].([]any)
	if !list || !strings.HasSuffix(o.GetKind(), "List") {
		return []fileObject{{o, d, 0}}, nil
	}
	out := make([]fileObject, len(items))
	for i, item := range items {
		fields, _ := item.(map[string]any)
		each := &unstructured.Unstructured{Object: fields}
		if kind := strings.TrimSuffix(o.GetKind(), "List"); kind != "" && each.GetKind() == "" && fields != nil {
			each.SetGroupVersionKind(o.GroupVersionKind().GroupVersion().WithKind(kind)) // the API server leaves it out
		}
		out[i] = fileObject{each, d, i + 1}
	}
	return out, nil
}

// place returns where an object is, as in dump.yaml:120 (document 2, item 3).
func (o fileObject) place() string {
	d := o.document
	line, parts := d.line, []string(nil)
	if d.of > 1 {
		parts = append(parts, fmt.Sprintf("document %d", d.number))
	}
	if o.item > 0 {
		line = d.lineOf(o.item)
		parts = append(parts, fmt.Sprintf("item %d", o.item))
	}
	at := fmt.Sprintf("%s:%d", d.file, line)
	if len(parts) > 0 {
		at += " (" + strings.Join(parts, ", ") + ")"
	}
	return at
}

// lineOf returns the line of an item of a list. In a document that is too large to be read once more, it is that of the list.
func (d document) lineOf(item int) int {
	text, faults := source.Read(d.file, d.text)
	if len(faults) > 0 {
		return d.line
	}
	roots, _ := text.Documents()
	if len(roots) != 1 {
		return d.line
	}
	for i, key := range roots[0].Content {
		if i%2 == 0 && key.Value == "items" {
			if list := roots[0].Content[i+1].Content; item <= len(list) {
				return d.line - 1 + list[item-1].Line
			}
		}
	}
	return d.line
}
