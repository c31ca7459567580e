// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"maps"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// printSizes prints the lines of product code of each area at commits, without comments and empty lines.
func printSizes(commits []string) error {
	sizes, areas := make([]map[string]int, len(commits)), map[string]bool{}
	for i, commit := range commits {
		var err error
		if sizes[i], err = sizesAt(commit); err != nil {
			return err
		}
		for area := range sizes[i] {
			areas[area] = true
		}
	}
	fmt.Printf("\nlines of product code, without comments and tests, at %s:\n", strings.Join(commits, " and "))
	for _, area := range append(slices.Sorted(maps.Keys(areas)), "") {
		fmt.Printf("  %-20s", area)
		for _, size := range sizes {
			fmt.Printf(" %7d", sum(size, area))
		}
		fmt.Println()
	}
	return nil
}

// sum returns the size of an area; the area "" is the whole.
func sum(sizes map[string]int, area string) (n int) {
	for name, size := range sizes {
		if area == "" || name == area {
			n += size
		}
	}
	return n
}

// sizesAt returns the lines of product code at a commit by area.
func sizesAt(commit string) (map[string]int, error) {
	archive, err := exec.Command("git", "archive", "--format=tar", commit).Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = errors.New(strings.TrimSpace(string(exit.Stderr)))
		}
		return nil, fmt.Errorf("reading commit %s: %w", commit, err)
	}
	out := map[string]int{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading commit %s: %w", commit, err)
		}
		if !isProduct(h.Name) {
			continue
		}
		code, err := io.ReadAll(r)
		if err != nil {
			return nil, fmt.Errorf("reading %s at %s: %w", h.Name, commit, err)
		}
		out[areaOf(h.Name)] += codeLines(code)
	}
}

// isProduct reports whether a path is one of a Go file that is neither a test nor a test's input.
func isProduct(name string) bool {
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !strings.Contains(name, "testdata/")
}

// areaOf returns the first two folders of a path, or the first one of a file that lies in it.
func areaOf(name string) string {
	parts := strings.Split(path.Dir(name), "/")
	return strings.Join(parts[:min(len(parts), 2)], "/")
}

// codeLines returns the number of lines that hold code. A text over several lines counts each of them.
func codeLines(code []byte) int {
	files, lines := token.NewFileSet(), map[int]bool{}
	file := files.AddFile("", -1, len(code))
	var s scanner.Scanner
	s.Init(file, code, nil, 0)
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return len(lines)
		}
		if tok == token.SEMICOLON && text == "\n" {
			continue
		}
		first := file.Line(pos)
		for n := range strings.Count(text, "\n") + 1 {
			lines[first+n] = true
		}
	}
}
