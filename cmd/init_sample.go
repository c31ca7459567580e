// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// addSample adds --sample, if the program carries samples.
func (p *program) addSample(f *initFlags, c *cobra.Command) {
	if p.samples == nil {
		return
	}
	c.Flags().StringVar(&f.sample, "sample", "",
		"write out the sample of this `name`, which the program carries:\n"+p.sampleNames("\n"))
	c.Example += "\n  operator init --sample webapp"
	// The only possible error is that the flag does not exist.
	_ = c.RegisterFlagCompletionFunc("sample", cobra.FixedCompletions(p.sampleList(), cobra.ShellCompDirectiveNoFileComp))
}

// sampleList returns the names of the samples.
func (p *program) sampleList() (names []string) {
	entries, _ := fs.ReadDir(p.samples, ".") // they are in the program
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// sampleNames lists the samples, with a break before each that does not fit into a line.
func (p *program) sampleNames(lineBreak string) string {
	var out strings.Builder
	width := 0
	for i, name := range p.sampleList() {
		if i > 0 {
			out.WriteString(",")
			if width += len(name) + 2; width > 70 {
				out.WriteString(lineBreak)
				width = len(name)
			} else {
				out.WriteString(" ")
			}
		} else {
			width = len(name)
		}
		out.WriteString(name)
	}
	return out.String()
}

// initSample writes the files of a sample.
func (p *program) initSample(f *initFlags, c *cobra.Command) error {
	wrong := func(format string, args ...any) error {
		return &usageError{command: c.CommandPath(), err: fmt.Errorf(format, args...)}
	}
	if f.golang || f.machine || f.add != "" || f.replace != "" || f.resource != "" || f.kind != "" || len(f.children) > 0 {
		return wrong("--sample writes what there is; it goes with --dir and --force alone")
	}
	if !slices.Contains(p.sampleList(), f.sample) {
		return wrong("there is no sample %q (there are %s)", f.sample, p.sampleNames(" "))
	}
	f.dir = cmp.Or(f.dir, f.name, f.sample)
	files, err := p.sampleFiles(f.sample)
	if err != nil {
		return err
	}
	if err := p.write(f, files); err != nil {
		return err
	}
	fmt.Fprintf(p.Out, "\nnext, play with it:\n  operator play --config %s --examples\n", filepath.ToSlash(f.dir))
	return nil
}

// sampleFiles returns the files of a sample, with those of its folders, such as its parts.
func (p *program) sampleFiles(sample string) (files []newFile, err error) {
	err = fs.WalkDir(p.samples, sample, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(p.samples, name)
		files = append(files, newFile{filepath.FromSlash(strings.TrimPrefix(name, sample+"/")), string(text)})
		return err
	})
	return files, err
}
