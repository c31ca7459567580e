// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
)

// Report is what a suite has found.
type Report struct {
	// Title says what the cases are and of which version, such as "kubectl's command tests of Kubernetes v1.37.1".
	Title string
	Cases []Case
}

// Case is one case of a suite.
type Case struct {
	// Group is a part of the suite, which gets figures of its own; empty if the suite has no parts.
	Group string
	Name  string
	// Real and Sandbox say whether it passes on a real server, and on the sandbox.
	Real, Sandbox bool
	// Why is the first failure on the sandbox, in one line.
	Why string
}

// print writes a table of Markdown, and the cases that the sandbox fails.
func (r Report) print(out io.Writer) {
	var real, both int
	for _, c := range r.Cases {
		if c.Real {
			real++
		}
		if c.Real && c.Sandbox {
			both++
		}
	}
	fmt.Fprintf(out, "\n| suite | cases that pass on a real server | of these on the sandbox |\n|---|---|---|\n| %s | %d | %d |\n", r.Title, real, both)
	r.groups(out)
	r.list(out, "Fails on the sandbox alone", func(c Case) bool { return c.Real && !c.Sandbox })
	r.list(out, "Fails on both", func(c Case) bool { return !c.Real && !c.Sandbox })
	r.list(out, "Passes on the sandbox alone", func(c Case) bool { return !c.Real && c.Sandbox })
}

// groups writes how many cases of each part pass and fail, if there are parts.
func (r Report) groups(out io.Writer) {
	type figures struct{ pass, fail, realPass, realFail int }
	var names []string
	found := map[string]*figures{}
	for _, c := range r.Cases {
		if c.Group == "" {
			continue
		}
		if found[c.Group] == nil {
			names, found[c.Group] = append(names, c.Group), &figures{}
		}
		f := found[c.Group]
		for _, each := range []struct {
			passes     bool
			pass, fail *int
		}{{c.Sandbox, &f.pass, &f.fail}, {c.Real, &f.realPass, &f.realFail}} {
			if each.passes {
				*each.pass++
			} else {
				*each.fail++
			}
		}
	}
	if len(names) == 0 {
		return
	}
	fmt.Fprint(out, "\n| part | sandbox, passed/failed | real server |\n|---|---|---|\n")
	for _, name := range names {
		f := found[name]
		fmt.Fprintf(out, "| %s | %d/%d | %d/%d |\n", name, f.pass, f.fail, f.realPass, f.realFail)
	}
}

// list writes the cases of one sort below a title, unless there are none.
func (r Report) list(out io.Writer, title string, matches func(Case) bool) {
	var found []Case
	for _, c := range r.Cases {
		if matches(c) {
			found = append(found, c)
		}
	}
	if len(found) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s (%d):\n\n", title, len(found))
	for _, c := range found {
		line := c.Name
		if c.Group != "" {
			line = c.Group + ": " + line
		}
		if c.Why != "" {
			line += ": " + c.Why
		}
		fmt.Fprintln(out, "*", line)
	}
}
