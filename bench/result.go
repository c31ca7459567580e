// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/bench/tell"
)

// result is everything that was measured.
type result struct {
	plan
	idle              memory
	cache             tell.Line
	minimal, operator []life
	// quick are the latencies of the minimal client, ours those of the operator.
	quick, ours []time.Duration
	children    life
	family      family
}

func (r *result) add(sub subject, l life) {
	if sub.name == minimal().name {
		r.minimal = append(r.minimal, l)
	} else {
		r.operator = append(r.operator, l)
	}
}

func (r *result) addLatencies(sub subject, latencies []time.Duration) {
	slices.Sort(latencies)
	if sub.name == minimal().name {
		r.quick = latencies
	} else {
		r.ours = latencies
	}
}

// write writes the tables.
func (r *result) write(out io.Writer) error {
	t := &table{}
	t.head(fmt.Sprintf("%d Foos of %.1f KB", r.objects, r.jsonSize()/1e3), "minimal client", "operator", "ratio", "at most")
	backlogWall := func(l life) float64 { return l.backlog.wall.Seconds() }
	backlogCPU := func(l life) float64 { return l.backlog.cpu.Seconds() }
	stormWall := func(l life) float64 { return l.storm.wall.Seconds() }
	stormCPU := func(l life) float64 { return l.storm.cpu.Seconds() }
	backlogServer := func(l life) float64 { return l.backlog.server.Seconds() }
	stormServer := func(l life) float64 { return l.storm.server.Seconds() }
	resident := func(l life) float64 { return float64(l.memory.resident) / 1e6 }
	peak := func(l life) float64 { return float64(l.memory.peak) / 1e6 }
	r.pair(t, "backlog: all statuses from a cold start", "s", backlogWall, "1.3")
	r.pair(t, "backlog: processor time", "s", backlogCPU, "4")
	r.pair(t, "backlog: processor time of the control plane", "s", backlogServer, "")
	r.pair(t, "update storm: from the first change until all statuses follow", "s", stormWall, "1.1")
	r.pair(t, "update storm: processor time", "s", stormCPU, "")
	r.pair(t, "update storm: processor time of the control plane", "s", stormServer, "")
	r.single(t, "memory (RSS) at rest after that", "MB", resident, "75 MB")
	r.single(t, "memory (RSS) at most", "MB", peak, "")
	r.single(t, "restart: until all were looked at", "s", func(l life) float64 { return l.restart.wall.Seconds() }, "")
	r.single(t, "restart: processor time", "s", func(l life) float64 { return l.restart.cpu.Seconds() }, "0.9 s")
	r.single(t, "restart: writes", "", func(l life) float64 { return float64(l.restart.writes) }, "0")
	t.row("from a change to its handler, median", milliseconds(at(r.quick, 0.5)), milliseconds(at(r.ours, 0.5)), "", "")
	t.row("from a change to its handler, 99th percentile", milliseconds(at(r.quick, 0.99)), milliseconds(at(r.ours, 0.99)), "", "20 ms")
	t.row("memory (RSS) without objects", "", megabytes(r.idle.resident), "", "40 MB")
	t.row("compact cache, times the JSON without managedFields", "", fmt.Sprintf("%.2f", float64(r.cache.Heap)/float64(r.cache.Bytes)), "", "1.5")
	if _, err := t.WriteTo(out); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\nOthers took %s of the machine meanwhile.\n\n", spread(append(slices.Clone(r.minimal), r.operator...), "%", func(l life) float64 { return 100 * l.others }))
	if err != nil {
		return err
	}
	c := &table{}
	l := r.children
	c.head(fmt.Sprintf("samples/foo, %d Foos", r.objects), "from a cold start", "restart")
	c.row("until all were done or looked at", fmt.Sprintf("%.1f s", l.backlog.wall.Seconds()), fmt.Sprintf("%.2f s", l.restart.wall.Seconds()))
	c.row("processor time", fmt.Sprintf("%.1f s", l.backlog.cpu.Seconds()), fmt.Sprintf("%.2f s", l.restart.cpu.Seconds()))
	c.row("writes", fmt.Sprint(l.backlog.writes), fmt.Sprint(l.restart.writes))
	c.row("memory (RSS) at rest / at most", megabytes(l.memory.resident)+" / "+megabytes(l.memory.peak), "")
	if _, err = c.WriteTo(out); err != nil {
		return err
	}
	return r.writeFamily(out)
}

// pair is a row of medians whose ratio counts.
func (r *result) pair(t *table, what, unit string, of func(life) float64, most string) {
	ratio := fmt.Sprintf("%.2f", median(r.operator, of)/median(r.minimal, of))
	t.row(what, spread(r.minimal, unit, of), spread(r.operator, unit, of), ratio, most)
}

// single is a row in which the operator's own figure counts.
func (r *result) single(t *table, what, unit string, of func(life) float64, most string) {
	t.row(what, spread(r.minimal, unit, of), spread(r.operator, unit, of), "", most)
}

func (r *result) jsonSize() float64 { return float64(r.cache.Bytes) / float64(max(1, r.cache.Objects)) }

// spread is the median and, in parentheses, the least and the most.
func spread(lives []life, unit string, of func(life) float64) string {
	low := slices.MinFunc(lives, func(a, b life) int { return cmp.Compare(of(a), of(b)) })
	high := slices.MaxFunc(lives, func(a, b life) int { return cmp.Compare(of(a), of(b)) })
	form := func(v float64) string {
		if v >= 20 || v == float64(int64(v)) {
			return fmt.Sprintf("%.0f", v)
		}
		return fmt.Sprintf("%.2f", v)
	}
	text := form(median(lives, of))
	if unit != "" {
		text += " " + unit
	}
	if of(low) == of(high) {
		return text
	}
	return fmt.Sprintf("%s (%s–%s)", text, form(of(low)), form(of(high)))
}

func median(lives []life, of func(life) float64) float64 {
	values := make([]float64, 0, len(lives))
	for _, l := range lives {
		values = append(values, of(l))
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 0 {
		return (values[middle-1] + values[middle]) / 2
	}
	return values[middle]
}

// at is the value below which that part of the sorted values lies.
func at(sorted []time.Duration, part float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(part*float64(len(sorted))))]
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1e3)
}

func megabytes(bytes int64) string { return fmt.Sprintf("%.0f MB", float64(bytes)/1e6) }
