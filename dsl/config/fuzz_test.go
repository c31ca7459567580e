// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/dsl/source"
)

// goType finds names that mean nothing to people who write YAML.
var goType = regexp.MustCompile(`\b(config|dsl|reflect|yaml|json)\.[A-Z]|map\[string\](any|interface)\b|\binterface ?\{|\bint64\b|\bnil\b|%!`)

// lineEnd is where YAML ends lines.
var lineEnd = regexp.MustCompile("\r\n|[\n\r\u0085\u2028\u2029]")

// unsound says what is wrong with a fault, nothing when it is as a fault must be.
func unsound(f source.Fault, file string, data []byte) string {
	lines := lineEnd.Split(strings.TrimPrefix(string(data), "\uFEFF"), -1)
	switch {
	case f.File != file:
		return "it is of another file"
	case f.Message == "" || strings.ContainsAny(f.Error(), "\n\r"):
		return "it is not one line"
	case goType.MatchString(f.Message):
		return "it speaks Go"
	case f.Line == 0 && f.Column == 0 && len(data) > 4<<20:
		return ""
	case f.Line < 1 || f.Line > len(lines):
		return "there is no such line"
	case f.Column < 1 || f.Column > utf8.RuneCountInString(lines[f.Line-1])+1:
		return "there is no such column"
	default:
		return ""
	}
}

func FuzzParse(f *testing.F) {
	for _, e := range examples(f, "bad") {
		f.Add(e.data)
	}
	good, err := filepath.Glob("testdata/good/*.yaml")
	if err != nil || len(good) == 0 {
		f.Fatalf("found no good configurations (%v)", err)
	}
	for _, file := range good {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	r := registry(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		op, err := config.Parse("f.yaml", data, r)
		if err == nil {
			if err := op.Validate(); err != nil {
				t.Errorf("an operator with faults: %v", err)
			}
			return
		}
		faults, ok := errors.AsType[source.Faults](err)
		if !ok || len(faults) == 0 {
			t.Fatalf("an error that is no faults: %v", err)
		}
		for _, fault := range faults {
			if what := unsound(fault, "f.yaml", data); what != "" {
				t.Errorf("%v: %s", fault, what)
			}
		}
	})
}
