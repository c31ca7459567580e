// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// signOf returns the sign of an action in a text.
func signOf(a Action) string {
	return map[Action]string{Deleted: "-", Recreated: "±", Orphaned: "o", Changed: "~", Created: "+", Marked: "."}[a]
}

// mostFields is the number of fields that a text shows of one object.
const mostFields = 12

// Text writes a plan for people, with colors if they are wanted.
func Text(w io.Writer, r *Report, colors bool) error {
	p := &printer{w: w, colors: colors}
	for _, g := range r.Groups() {
		if g.Action != Marked {
			p.group(g)
		}
	}
	p.marked(r)
	p.handlers(r)
	p.calls(r)
	p.rights(r)
	p.failing(r)
	warnings := r.Warnings
	if !r.Rested {
		warnings = append(warnings, "the operator does not come to rest within the time of --for, so the plan shows how far it comes")
	}
	p.section("Warnings:", warnings)
	if p.wrote {
		p.line("")
	}
	p.line("%s", r.conclusion())
	return p.err
}

// printer writes lines until one fails.
type printer struct {
	w      io.Writer
	colors bool
	wrote  bool
	err    error
}

// paint writes a line in the color of its sign.
func (p *printer) paint(sign, indent, text string) {
	color := map[string]string{"+": "32", "-": "31", "~": "33", "±": "33", "o": "33"}[sign]
	if p.colors && color != "" {
		text = "\x1b[" + color + "m" + text + "\x1b[0m"
	}
	p.line("%s%s", indent, text)
}

func (p *printer) line(format string, args ...any) {
	p.wrote = true
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// group writes equal changes with their fields. Several new objects have their names alone.
func (p *printer) group(g Group) {
	p.paint(signOf(g.Action), "", g.title())
	if g.Action == Created && len(g.Names) > 1 {
		return
	}
	for i, f := range g.Fields {
		if i == mostFields {
			p.line("    … and %d more", len(g.Fields)-i)
			break
		}
		text := f.String()
		p.paint(text[:1], "    ", text)
	}
}

// String returns the field as one line.
func (f Field) String() string {
	switch {
	case f.Before == nil:
		return "+ " + f.Path + ": " + shown(f.After)
	case f.After == nil:
		return "- " + f.Path + ": " + shown(f.Before)
	}
	return "~ " + f.Path + ": " + shown(f.Before) + " → " + shown(f.After)
}

// mostText is the number of characters that a text shows of one value.
const mostText = 80

// shown returns a value as short text.
func shown(value any) string {
	text, is := value.(string)
	if !is || strings.ContainsAny(text, "\n\t") || text == "" {
		data, err := json.Marshal(value)
		if err != nil {
			return fmt.Sprint(value)
		}
		text = string(data)
	}
	if runes := []rune(text); len(runes) > mostText {
		text = string(runes[:mostText]) + "…"
	}
	return text
}

// marked says how many objects get annotations of the operator alone.
func (p *printer) marked(r *Report) {
	if n := r.Summary[Marked]; n > 0 {
		p.line("%s in %s, only the operator's own annotations change", signOf(Marked), objects(n))
	}
}

// handlers writes the handlers that ran.
func (p *printer) handlers(r *Report) {
	var lines []string
	for _, h := range r.Handlers {
		lines = append(lines, fmt.Sprintf("%s, for %s: %s", h.Handler, h.Cause, objects(h.Objects)))
	}
	p.section("Handlers that run:", lines)
}

// calls writes the functions that are not called.
func (p *printer) calls(r *Report) {
	var lines []string
	for _, c := range r.Calls {
		of := objects(c.Objects)
		if c.Objects == 0 {
			of = "the operator as a whole"
		}
		lines = append(lines, fmt.Sprintf("would call %s for %s", c.Function, of))
	}
	if len(r.Unknown) > 0 {
		lines = append(lines, "what follows from the results is unknown, for "+listed(r.Unknown))
	}
	p.section("Functions in Go, which are not called (--functions):", lines)
}

// rights writes the rights that change.
func (p *printer) rights(r *Report) {
	if r.Rights == nil {
		return
	}
	var lines []string
	for _, right := range r.Rights.Added {
		lines = append(lines, "+ "+right)
	}
	for _, right := range r.Rights.Dropped {
		lines = append(lines, "- "+right)
	}
	p.section("Rights of the account that change (operator rbac):", lines)
}

// listed lists the first few of many.
func listed(all []string) string {
	if len(all) > mostNames {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:mostNames], ", "), len(all)-mostNames)
	}
	return strings.Join(all, ", ")
}

// failing writes the handlers that fail at the end.
func (p *printer) failing(r *Report) {
	var failing, unready []string
	for _, f := range r.Failing {
		failing = append(failing, f.What+": "+f.Message)
	}
	for _, u := range r.Unready {
		unready = append(unready, nameOf(u.Kind, u.Namespace, u.Name)+": "+u.Condition)
	}
	p.section("Failing at the end:", failing)
	p.section("Objects that become not ready:", unready)
	var refused []string
	for _, one := range r.Refused {
		refused = append(refused, nameOf(one.Kind, one.Namespace, one.Name)+", by "+one.Rule+": "+one.Message)
	}
	p.section("Objects that a new rule would refuse at their next change:", refused)
}

// mostLines is the number of lines that a text shows of one section.
const mostLines = 20

// section writes lines under a title; nothing without lines.
func (p *printer) section(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	if p.wrote {
		p.line("")
	}
	p.line("%s", title)
	for i, line := range lines {
		if i == mostLines {
			p.line("    … and %d more", len(lines)-i)
			break
		}
		p.line("    %s", line)
	}
}

// conclusion is the last line of a plan.
func (r *Report) conclusion() string {
	if r.IsEmpty() {
		return fmt.Sprintf("Plan of operator %s: no change to %s.", r.Operator, objects(r.Objects))
	}
	var parts []string
	for _, a := range []Action{Created, Changed, Recreated, Deleted, Orphaned} {
		if n := r.Summary[a]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, a))
		}
	}
	if len(parts) == 0 {
		parts = []string{"nothing but marks of the operator"}
	}
	return fmt.Sprintf("Plan of operator %s, with %s, %s of virtual time: %s.",
		r.Operator, objects(r.Objects), time.Duration(r.After*float64(time.Second)).Round(time.Second), strings.Join(parts, ", "))
}

// objects returns a number of objects.
func objects(n int) string {
	if n == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", n)
}
