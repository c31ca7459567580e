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

// usual is the number of Foos that goals are about.
const usual = 5000

// row is a row of the table.
type row struct {
	key, title, goal string
	form             func(float64) string
	// ratio says that what counts is how many times the first subject's it is.
	ratio bool
}

// rows are those of the table, with what is aimed at: a ratio where one is given, otherwise the figure itself.
func (p plan) rows() []row {
	of := fmt.Sprintf("%d × %s", p.objects, size(p.size))
	rest := fmt.Sprintf("… processor time in %s of rest", p.rest)
	return []row{
		{"backlog/wall", "backlog, " + of + ": all statuses from a cold start", "× 1.1", seconds, true},
		{"backlog/cpu", "… processor time", "× 1.9", seconds, true},
		{"backlog/server", "… processor time of the control plane", "", seconds, true},
		{"backlog/requests", "… requests an object", "1", count, false},
		{"storm/wall", fmt.Sprintf("update storm over %d of them: from the first change until all statuses follow", p.parents()), "× 1.03", seconds, true},
		{"storm/cpu", "… processor time", "× 2", seconds, true},
		{"storm/server", "… processor time of the control plane", "", seconds, true},
		{"storm/requests", "… requests an object", "1", count, false},
		{"children/wall", fmt.Sprintf("%d Foos with a ConfigMap each: all there", p.parents()), "× 1.15", seconds, true},
		{"children/cpu", "… processor time", "× 2.2", seconds, true},
		{"children/requests", "… requests an object", "2", count, false},
		{"heal/wall", fmt.Sprintf("… %d ConfigMaps deleted: until all are back", p.lost()), "× 1.1", seconds, true},
		{"heal/cpu", "… … processor time", "× 2.2", seconds, true},
		{"heal/requests", "… … requests a ConfigMap", "1", count, false},
		{"restart/wall", "restart over " + of + ": until all were looked at", "0.7 s", seconds, true},
		{"restart/cpu", "… processor time", "0.4 s", seconds, true},
		{"restart/writes", "… writes", "0", count, false},
		{"react/cpu", fmt.Sprintf("one change at a time, %d a second: processor time a change", time.Second/between), "1.2 ms", milliseconds, true},
		{"react/median", "… from a change to its status patch at the server, median", "", milliseconds, true},
		{"react/99th", "… from a change to its status patch at the server, 99th percentile", "× 1.1", milliseconds, true},
		{"deletion/wall", fmt.Sprintf("%d Foos with a finalizer deleted: until all are gone", p.parents()), "× 1.1", seconds, true},
		{"deletion/cpu", "… processor time", "× 2", seconds, true},
		{"deletion/requests", "… requests an object", "1", count, false},
		{"idle/rss", "memory (RSS) without objects", "43 MB", megabytes, false},
		{"idle/anon", "… of that its own", "", megabytes, false},
		{"idle/file", "… of that of files", "", megabytes, false},
		{"backlog/rss", "memory (RSS) at rest with " + of, "48 MB", megabytes, false},
		{"backlog/peak", "… at most", "65 MB", megabytes, false},
		{"backlog/anon", "… its own", "", megabytes, false},
		{"backlog/file", "… of files", "", megabytes, false},
		{"backlog/object", "… its own an object", "", bytes, false},
		{"backlog/resting", rest, "", milliseconds, false},
		{"restart/rss", "memory (RSS) at rest with " + of + ", after a restart", "", megabytes, false},
		{"restart/peak", "… at most", "", megabytes, false},
		{"restart/anon", "… its own", "", megabytes, false},
		{"restart/object", "… its own an object", "", bytes, false},
	}
}

func seconds(v float64) string      { return short(v) + " s" }
func milliseconds(v float64) string { return short(1e3*v) + " ms" }
func megabytes(v float64) string    { return fmt.Sprintf("%.1f MB", v/1e6) }
func bytes(v float64) string        { return fmt.Sprintf("%.0f B", v) }
func count(v float64) string        { return short(v) }
func size(bytes int) string {
	return strings.Replace(fmt.Sprintf("%.2f KB", float64(bytes)/1e3), "0 KB", " KB", 1)
}

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

// values are those of a row for a subject, by round.
func (r *result) values(sub subject, key string) map[int]float64 {
	out := map[int]float64{}
	for _, rec := range r.records {
		if v, found := rec.values[key]; found && rec.subject == sub.name && rec.failure == nil {
			out[rec.round] = v
		}
	}
	return out
}

// median is that of the values of all rounds.
func median(values map[int]float64) float64 {
	sorted := slices.Sorted(maps.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// derive works out the bytes an object: what the subject's own memory is above that without objects.
func (r *result) derive() {
	for _, rec := range r.records {
		i := slices.IndexFunc(r.subjects, func(s subject) bool { return s.name == rec.subject })
		empty := r.values(r.subjects[i], "idle/anon")
		if anon, found := rec.values[rec.scenario+"/anon"]; found && rec.scenario != "idle" && len(empty) > 0 {
			rec.values[rec.scenario+"/object"] = (anon - median(empty)) / float64(r.objects)
		}
	}
}

// table returns the table, and above it where the figures are from.
func (r *result) table() string {
	r.derive()
	var out strings.Builder
	fmt.Fprintf(&out, "`%s`, %s; %s.\n\n", strings.Join(append([]string{"go run ."}, os.Args[1:]...), " "), r.begun.UTC().Format(time.DateOnly), r.from)
	head := []string{""}
	for _, sub := range r.subjects {
		head = append(head, sub.title)
	}
	aimed := r.objects == usual && r.against == ""
	if aimed {
		head = append(head, "goal")
	}
	line(&out, head...)
	out.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, row := range r.rows() {
		cells, any := r.cells(row)
		if !any {
			continue
		}
		if aimed {
			cells = append(cells, row.goal)
		}
		line(&out, append([]string{row.title}, cells...)...)
	}
	return out.String()
}

func line(to *strings.Builder, cells ...string) {
	to.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// cells are a row's, and whether any of them says something.
func (r *result) cells(row row) (cells []string, any bool) {
	base := r.values(r.subjects[0], row.key)
	for i, sub := range r.subjects {
		values := r.values(sub, row.key)
		if len(values) == 0 {
			cells = append(cells, "–")
			continue
		}
		any = true
		text := row.form(median(values))
		sorted := slices.Sorted(maps.Values(values))
		if first, last := row.form(sorted[0]), row.form(sorted[len(sorted)-1]); first != last {
			number, _, _ := strings.Cut(first, " ")
			text += fmt.Sprintf(" (%s–%s)", number, strings.Fields(last)[0])
		}
		if row.ratio && i > 0 && len(base) > 0 && median(base) > 0 {
			text += fmt.Sprintf(", **× %.2f**", median(values)/median(base))
		}
		cells = append(cells, text)
	}
	return cells, any
}
