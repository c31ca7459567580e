// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command report prints the shape of the engine's packages: types with their fields and methods, function-typed fields,
// packages of one file with one importer, and words in comments that mostly make them hard to read. With commits as arguments
// it prints the size of the product by area at each of them instead. It judges nothing: numbers say where to look, and reading
// says whether something is wrong.
//
// It is run in the root of the repository:
//
//	go run ./hack/report
//	go run ./hack/report HEAD~10 HEAD
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
)

func main() {
	root := flag.String("root", "engine", "the folder whose packages are reported")
	fields := flag.Int("fields", 15, "types with more fields are listed")
	methods := flag.Int("methods", 25, "types with more methods are listed")
	flag.Parse()
	if err := report(*root, *fields, *methods, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// report prints the shape of the packages under root, or the sizes at commits if there are any.
func report(root string, fields, methods int, commits []string) error {
	if len(commits) > 0 {
		return printSizes(commits)
	}
	packages, err := read(root)
	if err == nil {
		err = readImporters(packages)
	}
	if err != nil {
		return err
	}
	printTypes(packages, fields, methods)
	printFunctionFields(packages)
	printSmall(packages)
	return printComments()
}

// printTypes lists the types that have many fields or methods, the largest first.
func printTypes(packages []*pkg, fields, methods int) {
	var large []*typ
	for _, p := range packages {
		for _, t := range p.types {
			if t.fields > fields || t.methods > methods {
				large = append(large, t)
			}
		}
	}
	slices.SortFunc(large, func(a, b *typ) int {
		return cmp.Or(cmp.Compare(b.fields+b.methods, a.fields+a.methods), strings.Compare(a.name, b.name))
	})
	fmt.Printf("types with more than %d fields or %d methods: %d\n", fields, methods, len(large))
	for _, t := range large {
		fmt.Printf("  %-40s %3d fields %3d methods\n", t.name, t.fields, t.methods)
	}
}

// printFunctionFields counts the fields that hold a function, by type.
func printFunctionFields(packages []*pkg) {
	total, lines := 0, []string{}
	for _, p := range packages {
		for _, t := range p.types {
			if total += len(t.functions); len(t.functions) > 0 {
				lines = append(lines, fmt.Sprintf("  %-40s %2d  %s", t.name, len(t.functions), strings.Join(t.functions, " ")))
			}
		}
	}
	fmt.Printf("\nfunction-typed fields: %d\n%s\n", total, strings.Join(lines, "\n"))
}

// printSmall lists the packages that have one file and one importer.
func printSmall(packages []*pkg) {
	fmt.Println("\npackages of one file with one importer:")
	for _, p := range packages {
		if p.files == 1 && len(p.importers) == 1 {
			fmt.Printf("  %s, imported by %s\n", p.path, p.importers[0])
		}
	}
}

// printComments counts words in the comments of the whole repository.
func printComments() error {
	counts, lines, err := comments(".")
	if err != nil {
		return err
	}
	fmt.Printf("\nin %d lines of comments of product code, per 1,000:\n", lines)
	for _, c := range counts {
		fmt.Printf("  %-14s %5.1f\n", c.name, 1000*float64(c.n)/float64(lines))
	}
	return nil
}
