// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// record is what was measured of one life of a subject.
type record struct {
	Subject, Life string
	Values        take
	// Failure is why there are no values, or not all.
	Failure string
}

func (r record) String() string {
	var parts []string
	for _, key := range sorted(r.Values) {
		if name, _, _ := strings.Cut(key, "/kind/"); name == key {
			parts = append(parts, fmt.Sprintf("%s %.4g", key, r.Values[key]))
		}
	}
	text := strings.Join(parts, ", ")
	if r.Failure != "" {
		text += "; FAILED: " + r.Failure
	}
	return text
}

// result is everything that was measured.
type result struct {
	plan
	begun   time.Time
	records []record
}

// values are those of a row for a subject, in order.
func (r *result) values(sub subject, key string) []float64 {
	var out []float64
	for _, rec := range r.records {
		if v, found := rec.Values[key]; found && rec.Subject == sub.name && rec.Failure == "" {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}

// failure is an error if something could not be measured, or did not come out as it should.
func (r *result) failure() error {
	var errs []error
	for _, rec := range r.records {
		if rec.Failure != "" {
			errs = append(errs, fmt.Errorf("measuring %s of %s: %s", rec.Life, rec.Subject, rec.Failure))
		}
	}
	return errors.Join(errs...)
}

func median(sorted []float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}
