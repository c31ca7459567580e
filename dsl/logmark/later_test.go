// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package logmark_test

import (
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
)

// TestLater holds that a line is the same, its place included, whether values are worked out at once or later.
func TestLater(t *testing.T) {
	helper := func(log logr.Logger) { log.WithCallDepth(1).Info("from a helper") }
	tests := map[string]func(log logr.Logger){
		"a line":                        func(log logr.Logger) { log.Info("done", "a", 1) },
		"an error":                      func(log logr.Logger) { log.Error(errors.New("broken"), "failed", "a", 1) },
		"a line of a level that is off": func(log logr.Logger) { log.V(2).Info("detail") },
		"what somebody wants to see":    func(log logr.Logger) { log.V(1).Info("detail") },
		"more values and a name":        func(log logr.Logger) { log.WithName("n").WithValues("b", 2).Info("done") },
		"through a helper":              func(log logr.Logger) { helper(log) },
		"two lines":                     func(log logr.Logger) { log.Info("one"); log.Info("two", "a", 1) },
	}
	for name, write := range tests {
		t.Run(name, func(t *testing.T) {
			var lines [2][]observer.LoggedEntry
			for i := range lines {
				core, seen := observer.New(zapcore.DebugLevel)
				log := zapr.NewLogger(zap.New(core, zap.AddCaller())).WithValues("resource", "foos")
				if i == 0 {
					log = log.WithValues("name", "a")
				} else {
					log = logmark.Later(log, func() []any { return []any{"name", "a"} })
				}
				write(log)
				lines[i] = seen.AllUntimed()
			}
			places := cmp.Transformer("place", func(e zapcore.EntryCaller) string { return e.TrimmedPath() })
			if diff := cmp.Diff(lines[0], lines[1], places, cmp.Comparer(func(a, b error) bool { return a.Error() == b.Error() })); diff != "" {
				t.Errorf("at once (-), later (+):\n%s", diff)
			}
		})
	}
	logmark.Later(logr.Logger{}, func() []any { return []any{"a", 1} }).Info("no sink")
}
