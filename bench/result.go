// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// record is what was measured of one life of a subject.
type record struct {
	Subject, Life string
	Round         int
	// Repeats is how often it was measured again because others disturbed it, Others the part of the machine that these
	// took in the run that counts.
	Repeats int
	Others  float64
	Values  take
	// Failure is why there are no values, or not all.
	Failure string `json:",omitempty"`
}

func (r record) String() string {
	var parts []string
	for _, key := range sorted(r.Values) {
		if name, _, _ := strings.Cut(key, "/kind/"); name == key {
			parts = append(parts, fmt.Sprintf("%s %.4g", key, r.Values[key]))
		}
	}
	text := fmt.Sprintf("%s; others took %.0f %%", strings.Join(parts, ", "), 100*r.Others)
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

// add notes a record, at once in the file for them.
func (r *result) add(rec record) error {
	r.records = append(r.records, rec)
	if r.raw == "" {
		return nil
	}
	file, err := os.OpenFile(r.raw, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(file).Encode(rec), file.Close())
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
