// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"time"
)

// moved is by which part a ratio must differ to be named.
const moved = 0.1

// baseline are the ratios to the minimal client of an earlier run, by row and subject, and where they are from.
type baseline struct {
	Day, Go string
	Cores   int
	Objects int
	Ratios  map[string]map[string]float64
}

// ratios are those of this run: of all rows that have any, and of rows that are no ratios the figures themselves.
func (r *result) ratios() baseline {
	out := baseline{r.begun.UTC().Format(time.DateOnly), runtime.Version(), runtime.NumCPU(), r.objects, map[string]map[string]float64{}}
	for _, row := range r.rows() {
		of := map[string]float64{}
		for _, sub := range r.subjects {
			if sub.name == minimalName {
				continue
			}
			value, known := r.ratio(row, sub)
			if !row.ratio {
				values := r.values(sub, row.key)
				value, known = median(values), len(values) > 0
			}
			if known {
				of[sub.name] = math.Round(1e3*value) / 1e3
			}
		}
		if len(of) > 0 {
			out.Ratios[row.key] = of
		}
	}
	return out
}

// hold holds the ratios against those of a file, and writes them into one, where that is wanted.
func (r *result) hold(out io.Writer) error {
	now := r.ratios()
	if r.compare != "" {
		data, err := os.ReadFile(r.compare)
		if err != nil {
			return err
		}
		var before baseline
		if err := json.Unmarshal(data, &before); err != nil {
			return fmt.Errorf("reading %s: %w", r.compare, err)
		}
		r.tellMoves(out, before, now)
	}
	if r.baseline == "" {
		return nil
	}
	data, err := json.MarshalIndent(now, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(r.baseline, append(data, '\n'), 0o644)
}

// tellMoves writes what has moved.
func (r *result) tellMoves(out io.Writer, before, now baseline) {
	fmt.Fprintf(out, "\nAgainst %s (%s, %s, %d cores, %d objects), what moved by more than a tenth:\n\n", r.compare, before.Day, before.Go, before.Cores, before.Objects)
	if before.Objects != now.Objects {
		fmt.Fprintf(out, "* Now there are %d objects: ratios differ with their number.\n", now.Objects)
	}
	same := true
	for _, row := range r.rows() {
		for _, sub := range r.subjects {
			was, there := before.Ratios[row.key][sub.name]
			is, here := now.Ratios[row.key][sub.name]
			if !there || !here || math.Abs(is-was) <= moved*math.Abs(was) {
				continue
			}
			same = false
			form, word := row.form, "worse"
			if row.ratio {
				form = func(v float64) string { return fmt.Sprintf("× %.2f", v) }
			}
			if is < was {
				word = "better"
			}
			fmt.Fprintf(out, "* %s: %s of %s: %s, was %s\n", word, row.key, sub.title, form(is), form(was))
		}
	}
	if same {
		fmt.Fprintln(out, "* nothing")
	}
}
