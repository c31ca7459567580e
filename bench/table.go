// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// row is a row of the table.
type row struct {
	key, title, goal string
	form             func(float64) string
	// ratio says that what counts is how many times the minimal client's it is.
	ratio bool
}

// rows are those of the table, with what is aimed at: a ratio where one is given, otherwise the figure itself.
func (p plan) rows() []row {
	of := fmt.Sprintf("%d × %.1f KB", p.objects, float64(p.size)/1e3)
	family := fmt.Sprintf("%d Foos with a ConfigMap each", p.parents)
	many := fmt.Sprintf("%d × 2.45 KB", p.many)
	return []row{
		{"backlog/wall", "backlog, " + of + ": all statuses from a cold start", "× 1.1", seconds, true},
		{"backlog/cpu", "… processor time", "× 2", seconds, true},
		{"backlog/server", "… processor time of the control plane", "", seconds, true},
		{"backlog/requests", "… requests an object", "1", count, false},
		{"storm/wall", "update storm: from the first change until all statuses follow", "× 1.03", seconds, true},
		{"storm/cpu", "… processor time", "× 2", seconds, true},
		{"storm/server", "… processor time of the control plane", "", seconds, true},
		{"storm/requests", "… requests an object", "1", count, false},
		{"children/wall", family + ": all there", "× 1.2", seconds, true},
		{"children/cpu", "… processor time", "× 2.2", seconds, true},
		{"children/requests", "… requests an object", "2", count, false},
		{"heal/wall", fmt.Sprintf("… %d ConfigMaps deleted: until all are back", p.lost), "× 1.2", seconds, true},
		{"heal/cpu", "… … processor time", "", seconds, true},
		{"heal/requests", "… … requests a ConfigMap", "1", count, false},
		{"restart/wall", "restart over " + of + ": until all were looked at", "0.7 s", seconds, true},
		{"restart/cpu", "… processor time", "0.4 s", seconds, true},
		{"restart/writes", "… writes", "0", count, false},
		{"react/cpu", fmt.Sprintf("one change at a time, %d a second: processor time a change", time.Second/between), "1.2 ms", milliseconds, true},
		{"react/call50", "… from a change to its handler, median", "", milliseconds, true},
		{"react/call99", "… from a change to its handler, 99th percentile", "8 ms", milliseconds, true},
		{"react/answer50", "… from a change to its status patch at the server, median", "", milliseconds, true},
		{"react/answer99", "… from a change to its status patch at the server, 99th percentile", "", milliseconds, true},
		{"deletion/wall", fmt.Sprintf("%d Foos with a finalizer deleted: until all are gone", p.parents), "× 1.1", seconds, true},
		{"deletion/cpu", "… processor time", "× 2", seconds, true},
		{"deletion/requests", "… requests an object", "1", count, false},
		{"idle/rss", "memory (RSS) without objects", "", megabytes, false},
		{"idle/anon", "… of that its own", "", megabytes, false},
		{"idle/file", "… of that of files", "", megabytes, false},
		{"memory/rss", "memory (RSS) at rest with " + of, "48 MB", megabytes, false},
		{"memory/peak", "… at most", "65 MB", megabytes, false},
		{"memory/anon", "… its own", "", megabytes, false},
		{"memory/file", "… of files", "", megabytes, false},
		{"memory/object", "… its own an object", "", bytes, false},
		{"memory/cpu", fmt.Sprintf("… processor time in %s of rest", p.rest), "", milliseconds, false},
		{"memory20k/rss", "memory (RSS) at rest with " + many, "70 MB", megabytes, false},
		{"memory20k/peak", "… at most", "", megabytes, false},
		{"memory20k/anon", "… its own", "", megabytes, false},
		{"memory20k/file", "… of files", "", megabytes, false},
		{"memory20k/object", "… its own an object", "", bytes, false},
		{"crowd/wall", "backlog of " + many + ": all statuses from a cold start", "", seconds, true},
		{"crowd/cpu", "… processor time", "", seconds, true},
		{"resync/cpu", fmt.Sprintf("one resync of all, within %s: processor time", again), "", seconds, false},
	}
}

func seconds(v float64) string      { return short(v) + " s" }
func milliseconds(v float64) string { return short(1e3*v) + " ms" }
func megabytes(v float64) string    { return fmt.Sprintf("%.1f MB", v/1e6) }
func bytes(v float64) string        { return fmt.Sprintf("%.0f B", v) }
func count(v float64) string        { return short(v) }

// short is a number with three digits that say something, or none that say nothing.
func short(v float64) string {
	switch {
	case v == float64(int64(v)) || v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// derive works out what follows from what was measured: the bytes an object.
func (r *result) derive() {
	for name, objects := range map[string]int{resting: r.objects, crowd: r.many} {
		for _, rec := range r.records {
			if anon, found := rec.Values[name+"/anon"]; found {
				i := slices.IndexFunc(r.subjects, func(s subject) bool { return s.name == rec.Subject })
				if empty := r.values(r.subjects[i], "idle/anon"); len(empty) > 0 {
					rec.Values[name+"/object"] = (anon - median(empty)) / float64(objects)
				}
			}
		}
	}
}

// mainPart is the part of the documentation whose rows have goals.
const mainPart = "main"

// write returns the tables.
func (r *result) write() string {
	r.derive()
	var out strings.Builder
	r.writeHead(&out)
	r.writeRows(&out)
	r.writeKinds(&out)
	return out.String()
}

// writeHead says where the figures are from.
func (r *result) writeHead(to *strings.Builder) {
	fmt.Fprintf(to, "`%s`, %s; %s.\n\n", strings.Join(append([]string{"go run ."}, os.Args[1:]...), " "), r.begun.UTC().Format(time.DateOnly), r.from)
}

// writeRows writes a table of the rows with measurements.
func (r *result) writeRows(to *strings.Builder) {
	head := []string{""}
	for _, sub := range r.subjects {
		head = append(head, sub.title)
	}
	aimed := r.part == mainPart
	if aimed {
		head = append(head, "goal")
	}
	line(to, head...)
	to.WriteString("|" + strings.Repeat("---|", len(head)) + "\n")
	for _, row := range r.rows() {
		cells, any := r.cells(row)
		if !any {
			continue
		}
		if aimed {
			cells = append(cells, row.goal)
		}
		line(to, append([]string{row.title}, cells...)...)
	}
}

func line(to *strings.Builder, cells ...string) {
	to.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// cells are a row's, and whether any of them says something.
func (r *result) cells(row row) (cells []string, any bool) {
	for _, sub := range r.subjects {
		values := r.values(sub, row.key)
		if len(values) == 0 {
			cells = append(cells, "–")
			continue
		}
		any = true
		text := row.form(median(values))
		if first, last := row.form(values[0]), row.form(values[len(values)-1]); first != last {
			number, _, _ := strings.Cut(first, " ")
			text += fmt.Sprintf(" (%s–%s)", number, strings.Fields(last)[0])
		}
		if ratio, known := r.ratio(row, sub); known && row.ratio && sub.name != minimalName {
			text += fmt.Sprintf(", **× %.2f**", ratio)
		}
		cells = append(cells, text)
	}
	return cells, any
}

// ratio is how many times the minimal client's a subject's median is.
func (r *result) ratio(row row, sub subject) (float64, bool) {
	base, values := r.values(subjects[0], row.key), r.values(sub, row.key)
	if len(base) == 0 || len(values) == 0 || median(base) == 0 {
		return 0, false
	}
	return median(values) / median(base), true
}

// writeKinds writes which requests there were.
func (r *result) writeKinds(out *strings.Builder) {
	found := map[string]bool{}
	for _, rec := range r.records {
		for key := range rec.Values {
			if strings.Contains(key, "/kind/") {
				found[key] = true
			}
		}
	}
	if len(found) == 0 {
		return
	}
	out.WriteString("\nRequests an object, from the audit log:\n\n")
	head := []string{"scenario", "request"}
	for _, sub := range r.subjects {
		head = append(head, sub.title)
	}
	line(out, head...)
	out.WriteString("|" + strings.Repeat("---|", len(head)) + "\n")
	for _, key := range slices.Sorted(maps.Keys(found)) {
		scenario, kind, _ := strings.Cut(key, "/kind/")
		cells, _ := r.cells(row{key: key, form: func(v float64) string { return fmt.Sprintf("%.4g", v) }})
		line(out, append([]string{scenario, kind}, cells...)...)
	}
}
