// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package source reads configurations as text: it finds the files, reads their documents within limits and without
// aliases and merge keys, and places faults, including syntax errors, in the files. The only part of the language
// that it knows is which fields have expressions, because it counts these. It is pure.
package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf8"
)

// maxSize limits the size of a file. A ConfigMap cannot be larger, and the YAML parser may need three hundred times
// as much memory.
const maxSize = 1 << 20

// maxTotal limits the size of all files of a configuration together, for the same reason.
const maxTotal = 16 << 20

// Files replaces directories by the YAML files in them, sorted by name. It skips files whose names begin with a
// dot, because a mounted ConfigMap keeps its versions there, and files of cases; see [IsCases].
func Files(paths []string) (names []string, faults Faults) {
	seen := map[string]bool{}
	for _, given := range paths {
		found, err := filesOf(given)
		if err != nil {
			faults = append(faults, Unread(given, err))
			continue
		}
		for _, name := range found {
			if clean := filepath.Clean(name); !seen[clean] {
				seen[clean] = true
				names = append(names, name)
			}
		}
	}
	return names, faults
}

// IsCases reports whether a file has cases that test an operator: its name ends with _test.yaml.
func IsCases(name string) bool {
	return strings.HasSuffix(name, "_test.yaml") || strings.HasSuffix(name, "_test.yml")
}

func filesOf(given string) ([]string, error) {
	info, err := os.Stat(given)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{given}, nil
	}
	entries, err := os.ReadDir(given)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		extension := filepath.Ext(entry.Name())
		if strings.HasPrefix(entry.Name(), ".") || IsCases(entry.Name()) || extension != ".yaml" && extension != ".yml" {
			continue
		}
		name := filepath.Join(given, entry.Name())
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			continue
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil, errors.New("the directory holds no *.yaml and no *.yml file")
	}
	return names, nil
}

// Reader reads the files of one configuration. Its zero value is ready for use.
type Reader struct{ total int64 }

// ReadFile returns the text of a file. It returns an error if the file is not a regular one, such as a pipe or a
// device, or if all files together are too large. Of a file that is too large by itself, it returns enough to show
// that.
func (r *Reader) ReadFile(name string) ([]byte, error) {
	data, err := read(name, maxSize+1, os.Stat, os.Open)
	return r.counted(data, err)
}

// ReadBelow is [Reader.ReadFile] for a file below a directory. Neither its name nor a link can lead out of the directory; links
// within it can, as in a mounted ConfigMap.
func (r *Reader) ReadBelow(dir, name string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // nothing is written
	data, err := read(name, maxSize+1, root.Stat, root.Open)
	return r.counted(data, err)
}

// counted adds a file to those that were read.
func (r *Reader) counted(data []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	if r.total += int64(len(data)); r.total > maxTotal {
		return nil, fmt.Errorf("the files of the configuration are larger than %d MiB together", maxTotal>>20)
	}
	return data, nil
}

// ReadFile returns the text of a file that is not, or not only, a configuration, such as one with objects. It returns an error if the
// file is not a regular one, or larger than the files of a configuration may be together.
func ReadFile(name string) ([]byte, error) { return readAll(name, os.Stat, os.Open) }

// ReadInput returns the text of an input, with the limit of [ReadFile].
func ReadInput(in io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxTotal+1))
	if err == nil && len(data) > maxTotal {
		return nil, errTooLarge()
	}
	return data, err
}

// ReadBelow is [ReadFile] for a file below a directory, as [Reader.ReadBelow].
func ReadBelow(dir, name string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // nothing is written
	return readAll(name, root.Stat, root.Open)
}

func readAll(name string, stat func(string) (fs.FileInfo, error), open func(string) (*os.File, error)) ([]byte, error) {
	data, err := read(name, maxTotal+1, stat, open)
	if err == nil && len(data) > maxTotal {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errTooLarge()}
	}
	return data, err
}

// errTooLarge returns the error for a text that is larger than the files of a configuration may be together.
func errTooLarge() error { return fmt.Errorf("it is larger than %d MiB", maxTotal>>20) }

// read reads at most so many bytes of a file by the functions that find and open it.
func read(name string, most int64, stat func(string) (fs.FileInfo, error), open func(string) (*os.File, error)) ([]byte, error) {
	info, err := stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a pipe waits for its writer, and a device may be endless
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("it is not a regular file")}
	}
	file, err := open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most))
}

// Unread returns the fault for a file or directory that could not be read.
func Unread(name string, err error) Fault {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	return Fault{File: name, Message: fmt.Sprintf("reading configuration: %v", err)}
}

// Text is the text of one file.
type Text struct {
	// Name is the name of the file, for faults.
	Name string

	text  string
	lines []string
	// characters are those of line number split, kept for the next fault in that line. Checks against schemas may
	// run in parallel, so mu guards them.
	mu         sync.Mutex
	characters []rune
	split      int
}

// line returns the characters of a line, from 1. They are read-only.
func (s *Text) line(number int) []rune {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.split != number {
		s.characters, s.split = []rune(s.lines[number-1]), number
	}
	return s.characters
}

// Read checks that data is valid text for YAML.
func Read(name string, data []byte) (*Text, Faults) {
	if len(data) > maxSize {
		return nil, Faults{{File: name, Message: fmt.Sprintf("the file is larger than %d MiB", maxSize>>20)}}
	}
	text := strings.TrimPrefix(string(data), "\uFEFF")
	s := &Text{Name: name, text: text, lines: lines(text)}
	for i, line := range s.lines {
		if column, what := unreadable(line); what != "" {
			return nil, Faults{{File: name, Line: i + 1, Column: column, Message: what}}
		}
	}
	return s, nil
}

// unreadable returns the first invalid character in a line.
func unreadable(line string) (column int, what string) {
	column = 1
	for i, r := range line {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(line[i:]); size == 1 {
				return column, "the text is not UTF-8"
			}
		}
		if !printable(r) {
			return column, fmt.Sprintf("the character %U must not be in YAML", r)
		}
		column++
	}
	return 0, ""
}

func printable(r rune) bool {
	return r == '\t' || r >= 0x20 && r <= 0x7E || r == 0x85 || r >= 0xA0 && r <= 0xD7FF ||
		r >= 0xE000 && r <= 0xFFFD && r != 0xFEFF || r >= 0x10000 && r <= 0x10FFFF
}

// lines splits text into lines as YAML does.
func lines(text string) []string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	var out []string
	for {
		i := strings.IndexAny(text, "\n\r\u0085\u2028\u2029")
		if i < 0 {
			return append(out, text)
		}
		out = append(out, text[:i])
		_, size := utf8.DecodeRuneInString(text[i:])
		text = text[i+size:]
	}
}
