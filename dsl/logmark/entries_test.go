// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package logmark_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
)

// TestEntriesHaveTheValuesOfTheirLoggers holds that each line comes with all its values, and that loggers share none.
func TestEntriesHaveTheValuesOfTheirLoggers(t *testing.T) {
	var got []logmark.Entry
	log := logmark.Entries(1, func(e logmark.Entry) {
		got = append(got, e)
		e.Values["kept"] = true // by whom takes it, and not by the logger
	})
	child := log.WithName("ignored").WithValues("name", "web")
	child.Info("it is there", "n", 2)
	child.V(1).Info("in detail")
	child.V(2).Info("in too much detail")
	child.Error(errors.New("no"), "it is not there", "name", "db")
	log.Error(nil, "without an error")
	want := []logmark.Entry{
		{Message: "it is there", Values: map[string]any{"name": "web", "n": 2, "kept": true}},
		{Message: "in detail", Level: 1, Values: map[string]any{"name": "web", "kept": true}},
		{Message: "it is not there", Failed: true, Values: map[string]any{"name": "db", "error": "no", "kept": true}},
		{Message: "without an error", Failed: true, Values: map[string]any{"kept": true}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
