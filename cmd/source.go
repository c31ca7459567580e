// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl/source"
)

// sourceOfMain returns the folder of the main package if go run has built the program, as in go run ./samples/foobar.
// There the configuration is, which the program is for.
func sourceOfMain() string {
	program, err := os.Executable()
	if err != nil || !strings.Contains(filepath.ToSlash(program), "/go-build") {
		return ""
	}
	callers := make([]uintptr, 16)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	for {
		frame, more := frames.Next()
		if frame.Function == "main.main" {
			return fromHere(filepath.Dir(frame.File))
		}
		if !more {
			return ""
		}
	}
}

// fromHere returns a path from the current folder on, if it is below that.
func fromHere(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	if short, err := filepath.Rel(here, path); err == nil && filepath.IsLocal(short) {
		return short
	}
	return path
}

// holdsOperator reports whether a folder has a file with an operator.
func holdsOperator(dir string) bool {
	names, _ := source.Files([]string{dir})
	for _, name := range names {
		if data, err := source.ReadFile(name); err == nil && hasOperator(data) {
			return true
		}
	}
	return false
}

// nearest returns the paths of a configuration that was not given: those of the current folder, or of the main package.
// Without them the operator is one in Go alone. Beside is the folder for its examples.
func (p *program) nearest() (paths []string, beside string) {
	for _, dir := range []string{".", p.source} {
		if dir != "" && holdsOperator(dir) {
			return []string{dir}, dir
		}
	}
	switch {
	case len(p.extra) == 0:
		return []string{"."}, "." // which is reported to have no operator
	case p.source != "":
		return nil, p.source
	}
	return nil, "."
}
