// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// sure is how sure it must be that a figure has moved. With 7 rounds it takes all of them to say so.
const sure = 0.98

// moves says of each figure whether it has moved between the first subject and the second, from the ratios of the two in
// each round: what disturbs a round mostly disturbs both.
func (r *result) moves() string {
	var out strings.Builder
	fmt.Fprintf(&out, "\nMoved, by pairs of %d rounds (at least %.0f %% sure; one in %.0f figures that are as they were would be named, too):\n\n",
		r.rounds, 100*sure, 1/(1-sure))
	var held []string
	for _, row := range r.rows() {
		ratios := r.ratios(row.key)
		if len(ratios) == 0 || ofFiles(row.key) {
			continue
		}
		slices.Sort(ratios)
		by, certain := math.Exp(middle(ratios)), sureness(ratios)
		text := fmt.Sprintf("%s: × %.3f (%.2f–%.2f), %.1f %% sure", row.key, by, math.Exp(ratios[0]), math.Exp(ratios[len(ratios)-1]), 100*certain)
		switch {
		case certain < sure:
			held = append(held, text)
		case by > 1:
			fmt.Fprintf(&out, "* worse: %s\n", text)
		default:
			fmt.Fprintf(&out, "* better: %s\n", text)
		}
	}
	fmt.Fprintf(&out, "\nNot shown to have moved:\n\n* %s\n", strings.Join(held, "\n* "))
	return out.String()
}

// ofFiles reports whether pages of the program's file are in a figure. How many are in memory depends on when the file was built.
func ofFiles(key string) bool {
	_, figure, _ := strings.Cut(key, "/")
	return figure == "rss" || figure == "file" || figure == "peak"
}

// ratios are the logarithms of the second subject's values over the first one's, in rounds that have both.
func (r *result) ratios(key string) (out []float64) {
	before, now := r.values(r.subjects[0], key), r.values(r.subjects[1], key)
	for _, round := range slices.Sorted(maps.Keys(now)) {
		if was, found := before[round]; found && was > 0 && now[round] > 0 {
			out = append(out, math.Log(now[round]/was))
		}
	}
	return out
}

func middle(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// sureness returns how sure it is that the differences are not by chance, by Wilcoxon's signed-rank test: if they were, each
// sign would be as likely as the other, and so would be all combinations of signs. It is the share of those that make a smaller
// sum of ranks than the observed ones. Ranks, not sizes, so that one disturbed round does not decide.
func sureness(differences []float64) float64 {
	ranked := slices.SortedFunc(slices.Values(differences), func(a, b float64) int { return cmp.Compare(math.Abs(a), math.Abs(b)) })
	ranked = slices.DeleteFunc(ranked, func(d float64) bool { return d == 0 })
	observed := 0
	for i, d := range ranked {
		if d > 0 {
			observed += i + 1
		} else {
			observed -= i + 1
		}
	}
	smaller := 0
	for signs := range 1 << len(ranked) {
		sum := 0
		for i := range ranked {
			sum += (i + 1) * (1 - 2*(signs>>i&1))
		}
		if max(sum, -sum) < max(observed, -observed) {
			smaller++
		}
	}
	return float64(smaller) / float64(int(1)<<len(ranked))
}
