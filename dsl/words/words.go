// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package words finds the known word that a mistyped word probably means. It is pure.
package words

import (
	"fmt"
	"strings"
)

// Nearest returns the most similar known word, and whether it is similar enough: about one in three letters may be
// missing, added, changed or swapped. Case does not count. Among equally similar words, the first wins.
func Nearest(word string, known []string) (nearest string, found bool) {
	const longest = 100 // people do not mistype longer words, and the cost is quadratic
	if len(word) > longest {
		return "", false
	}
	best := len(word)/3 + 1
	for _, k := range known {
		if len(k) > longest {
			continue
		}
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < best || d == 0 && !found {
			nearest, found, best = k, true, d
		}
	}
	return nearest, found
}

// Hint returns advice for an unknown word: the most similar known word, or all known words.
func Hint(word string, known []string) string {
	meant, near := Nearest(word, known)
	switch {
	case near:
		return fmt.Sprintf("did you mean %q?", meant)
	case len(known) == 0:
		return "there are none"
	case len(known) == 1:
		return "want " + known[0]
	}
	const most = 30
	if more := len(known) - most; more > 0 {
		return fmt.Sprintf("want one of %s and %d more", strings.Join(known[:most], ", "), more)
	}
	return "want one of " + strings.Join(known, ", ")
}

// distance returns the number of letters to remove, add, change or swap with their neighbour to get from a to b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
