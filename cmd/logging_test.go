// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
)

func TestLogFlags(t *testing.T) {
	const seconds = `20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)`
	const stack = `"stacktrace":"[^"]*logging_test.go[^"]*"`
	tests := map[string]struct {
		args string
		want []string // a pattern for each line
	}{
		"by default, JSON from info on": {"", []string{
			`{"level":"info","ts":"` + seconds + `","logger":"foo","msg":"info","name":"a"}`,
			`{"level":"error","ts":"` + seconds + `","logger":"foo","msg":"error","error":"no"}`,
		}},
		"for people, lines from debug on": {"--zap-devel", []string{
			seconds + `\tDEBUG\tfoo\tone\t{"name": "a"}`,
			seconds + `\tINFO\tfoo\tinfo\t{"name": "a"}`,
			seconds + `\tERROR\tfoo\terror\t{"error": "no"}`,
		}},
		"a number shows that much detail": {"--zap-log-level=3 --zap-stacktrace-level=panic", []string{
			`{"level":"Level\(-3\)",.*"msg":"three".*`,
			`{"level":"debug",.*"msg":"one".*`,
			`{"level":"info",.*`,
			`{"level":"error","ts":"[^"]*","logger":"foo","msg":"error","error":"no"}`,
		}},
		"debug shows one level of detail": {"--zap-log-level=debug --zap-stacktrace-level=panic", []string{
			`{"level":"debug",.*"msg":"one".*`, `{"level":"info",.*`, `{"level":"error",.*`,
		}},
		"a level wins over devel": {"--zap-devel --zap-log-level=error --zap-stacktrace-level=panic", []string{
			seconds + `\tERROR\tfoo\terror\t{"error": "no"}`,
		}},
		"panic silences all":               {"--zap-log-level=panic", nil},
		"an encoder wins over devel":       {"--zap-devel --zap-encoder=json --zap-log-level=error --zap-stacktrace-level=panic", []string{`{"level":"error".*`}},
		"console without devel":            {"--zap-encoder=console --zap-log-level=error --zap-stacktrace-level=panic", []string{seconds + `\tERROR\tfoo\terror\t{"error": "no"}`}},
		"stack traces from error on":       {"--zap-stacktrace-level=error", []string{`{"level":"info","ts":"[^"]*","logger":"foo","msg":"info","name":"a"}`, `{"level":"error".*` + stack + `}`}},
		"stack traces from info on":        {"--zap-stacktrace-level=info", []string{`{"level":"info".*` + stack + `}`, `{"level":"error".*` + stack + `}`}},
		"times in seconds":                 {"--zap-time-encoding=epoch --zap-log-level=error", []string{`.*"ts":\d{10}\.\d+,.*`}},
		"times in milliseconds":            {"--zap-time-encoding=millis --zap-log-level=error", []string{`.*"ts":\d{13}(\.\d+)?,.*`}},
		"times in nanoseconds":             {"--zap-time-encoding=nano --zap-log-level=error", []string{`.*"ts":\d{19},.*`}},
		"times after ISO 8601":             {"--zap-time-encoding=iso8601 --zap-log-level=error", []string{`.*"ts":"[-0-9]{10}T[:0-9]{8}\.\d{3}(Z|[+-]\d{4})",.*`}},
		"times after RFC 3339":             {"--zap-time-encoding=rfc3339 --zap-log-level=error", []string{`.*"ts":"` + seconds + `",.*`}},
		"times after RFC 3339, exactly":    {"--zap-time-encoding=rfc3339nano --zap-log-level=error", []string{`.*"ts":"[-0-9]{10}T[:0-9]{8}\.\d+(Z|[+-]\d\d:\d\d)",.*`}},
		"words may be written in capitals": {"--zap-encoder=JSON --zap-log-level=ERROR", []string{`{"level":"error".*`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out buffer
			log, _ := logFlagsOf(t, test.args).logger(&out)
			log = log.WithName("foo")
			log.V(3).Info("three", "name", "a")
			log.V(1).Info("one", "name", "a")
			log.Info("info", "name", "a")
			log.Error(errors.New("no"), "error")
			text := regexp.MustCompile(`([a-z]\S*\n\t.*\n)+`).ReplaceAllString(out.String(), "STACK\n")
			pattern := "^" + strings.Join(append(test.want, "$"), "\n")
			if !regexp.MustCompile(pattern).MatchString(text) {
				t.Errorf("got\n%s\nwant\n%s", out.String(), pattern)
			}
		})
	}
}

func TestAFloodOfOneMessageIsThinnedOut(t *testing.T) {
	tests := map[string]struct {
		args string
		want func(lines int) bool
	}{
		"by default":                   {"", func(n int) bool { return n >= 100 && n < 300 }},
		"not for who wants detail":     {"--zap-log-level=debug", func(n int) bool { return n == 500 }},
		"not for people at a terminal": {"--zap-devel --zap-log-level=info", func(n int) bool { return n == 500 }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out buffer
			log, _ := logFlagsOf(t, test.args).logger(&out)
			for range 500 {
				log.Info("again")
			}
			if n := strings.Count(out.String(), "\n"); !test.want(n) {
				t.Errorf("got %d of 500 lines", n)
			}
		})
	}
}

// TestTextsOfUsersStayWithinTheirLine holds that texts of users are within one line of the log, and steer no
// terminal: neither as a message, nor as a value, nor in an error.
func TestTextsOfUsersStayWithinTheirLine(t *testing.T) {
	const wicked = "a\n2030-01-31T12:00:00Z\tINFO\tfoo\tall is well\r\x1b[2K\x1b]0;title\a\x7f\u0085\u009b31m\u2028\u202e\xff"
	const steering = "\r\x1b\a\x7f\u0085\u009b\u2028\u202e"
	for _, args := range []string{"--zap-encoder=console", "--zap-encoder=json"} {
		tests := map[string]func(logr.Logger){
			"as a message":         func(l logr.Logger) { l.Info(wicked) },
			"as a value":           func(l logr.Logger) { l.Info("a", "value", wicked) },
			"as a value before it": func(l logr.Logger) { l.WithValues("value", wicked).Info("a") },
			"as a key":             func(l logr.Logger) { l.Info("a", wicked, "value") },
			"within a value":       func(l logr.Logger) { l.Info("a", "value", map[string]any{"x": []any{wicked}}) },
			"in an error":          func(l logr.Logger) { l.Error(errors.New(wicked), "a") },
			"in an error's words":  func(l logr.Logger) { l.Error(errors.New("no"), wicked) },
		}
		for name, write := range tests {
			t.Run(name+" "+args, func(t *testing.T) {
				var out buffer
				log, _ := logFlagsOf(t, args+" --zap-stacktrace-level=panic").logger(&out)
				write(log)
				text := out.String()
				if n := strings.Count(text, "\n"); n != 1 || !strings.HasSuffix(text, "\n") {
					t.Errorf("there are %d lines: %q", n, text)
				}
				if strings.ContainsAny(text, steering) || !utf8.ValidString(text) {
					t.Errorf("the line steers: %q", text)
				}
				if !strings.Contains(text, `a\n2030`) || !strings.Contains(text, `\u001b[2K`) {
					t.Errorf("the line does not say what was in it: %q", text)
				}
				if args == "--zap-encoder=json" && !json.Valid([]byte(text)) {
					t.Errorf("the line is no JSON: %q", text)
				}
			})
		}
	}
}

// TestTextsOfUsersMakeNoLongLines holds that no text of a user makes a line much longer than it may be: errors quote values of objects.
func TestTextsOfUsersMakeNoLongLines(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, write := range map[string]func(logr.Logger){
		"as a message":         func(l logr.Logger) { l.Info(long) },
		"as a value":           func(l logr.Logger) { l.Info("a", "value", long) },
		"as a value before it": func(l logr.Logger) { l.WithValues("value", long).Info("a") },
		"in an error":          func(l logr.Logger) { l.Error(fmt.Errorf("parsing: %w", errors.New(long)), "a") },
		"as one of many":       func(l logr.Logger) { l.Info("a", "value", slices.Repeat([]string{long[:100]}, 10_000)) },
		"in an error's value":  func(l logr.Logger) { l.Info("a", "error", errors.New(long)) },
	} {
		for _, args := range []string{"--zap-encoder=console", "--zap-encoder=json"} {
			t.Run(name+" "+args, func(t *testing.T) {
				var out buffer
				log, _ := logFlagsOf(t, args).logger(&out)
				write(log)
				if text := out.String(); len(text) > mostLogged+1000 || !strings.Contains(text, "xxx…") {
					t.Errorf("a line has %d bytes: %.100s", len(text), text)
				}
			})
		}
	}
}

// TestMarks holds that a line says how much it matters and whose words it is.
func TestMarks(t *testing.T) {
	tests := map[string]struct {
		args  string
		write func(logr.Logger)
		want  string
	}{
		"a warning is one": {"--zap-encoder=json", func(l logr.Logger) { l.Info("a", logmark.Warning, true, "b", 1) },
			`{"level":"warn",.*"msg":"a","b":1}`},
		"an error is more than a warning": {"--zap-encoder=json", func(l logr.Logger) { l.Error(errors.New("no"), "a", logmark.Warning, true) },
			`{"level":"error",.*"msg":"a","error":"no"}`},
		"a user's text is quoted for people": {"--zap-encoder=console", func(l logr.Logger) { l.Info(`all {"is": "well"}`, logmark.Quoted, true) },
			`.*\tINFO\t"all {\\"is\\": \\"well\\"}"`},
		"it is as it is for machines": {"--zap-encoder=json", func(l logr.Logger) { l.Info("all is well", logmark.Quoted, true) },
			`{.*"msg":"all is well"}`},
		"a value of that name is no mark": {"--zap-encoder=json", func(l logr.Logger) { l.Info("a", logmark.Warning, "very") },
			`{"level":"info",.*"msg":"a","handwerk.warning":"very"}`},
		"what has values of its own has marks too": {"--zap-encoder=json", func(l logr.Logger) { l.WithValues("b", 1).Info("a", logmark.Warning, true) },
			`{"level":"warn",.*"msg":"a","b":1}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out buffer
			log, _ := logFlagsOf(t, test.args).logger(&out)
			test.write(log)
			if !regexp.MustCompile("^" + test.want + "\n$").MatchString(out.String()) {
				t.Errorf("got %s", out.String())
			}
		})
	}
}

// TestLinesAreForWhoReadsThem holds which form lines have without a flag.
func TestLinesAreForWhoReadsThem(t *testing.T) {
	tests := map[string]struct {
		terminal bool
		args     string
		console  bool
	}{
		"people at a terminal":           {true, "", true},
		"a file or a pipe":               {false, "", false},
		"a terminal that wants JSON":     {true, "--zap-encoder=json", false},
		"a file that wants to be read":   {false, "--zap-encoder=console", true},
		"a developer who writes to file": {false, "--zap-devel", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out buffer
			f := logFlagsOf(t, test.args)
			f.terminal = func(io.Writer) bool { return test.terminal }
			log, _ := f.logger(&out)
			log.Info("hello")
			if got := !json.Valid([]byte(out.String())); got != test.console {
				t.Errorf("got %s", out.String())
			}
		})
	}
}

func TestBadLevelsAreRefused(t *testing.T) {
	for _, level := range []string{"0", "-1", "128", "trace", "1.5"} {
		if err := (&logFlags{level: level}).check(); err == nil {
			t.Errorf("level %q was taken", level)
		}
	}
}

// TestAdoptGlobals changes the process, so no test of this package runs in parallel.
func TestAdoptGlobals(t *testing.T) {
	handlers := utilruntime.ErrorHandlers
	t.Cleanup(func() {
		utilruntime.ErrorHandlers = handlers
		adopted := utilruntime.ErrorHandlers
		adoptGlobals(logr.Discard(), 0)
		utilruntime.ErrorHandlers = adopted
		klog.ClearLogger()
	})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	tests := map[string]struct {
		args string
		log  func()
		want string
	}{
		"klog's lines go the same way":           {"", func() { klog.InfoS("hello", "name", "a") }, `"msg":"hello","name":"a"`},
		"klog's detail is hidden":                {"", func() { klog.V(4).InfoS("detail") }, ""},
		"klog's detail shows when asked for":     {"--zap-log-level=4", func() { klog.V(4).InfoS("detail") }, `"msg":"detail"`},
		"features of client-go are no news":      {"--zap-log-level=debug", func() { klog.V(1).InfoS("Feature gate default state", "feature", "a") }, ""},
		"they show when asked for":               {"--zap-log-level=2", func() { klog.V(1).InfoS("Feature gate default state", "feature", "a") }, `"feature":"a"`},
		"more detail than asked for does not":    {"--zap-log-level=4", func() { klog.V(5).InfoS("detail") }, ""},
		"a context without a logger has it too":  {"", func() { klog.FromContext(t.Context()).Info("hello") }, `"msg":"hello"`},
		"unhandled errors are logged":            {"", func() { utilruntime.HandleErrorWithContext(t.Context(), errors.New("no"), "watching", "type", "foos") }, `"msg":"watching","type":"foos","error":"no"`},
		"what stops because it shall is quiet":   {"", func() { utilruntime.HandleErrorWithContext(ended, context.Canceled, "watching") }, ""},
		"a context of another's has ended":       {"", func() { utilruntime.HandleErrorWithContext(t.Context(), context.Canceled, "watching") }, `"msg":"watching"`},
		"other errors are logged while stopping": {"", func() { utilruntime.HandleErrorWithContext(ended, errors.New("no"), "watching") }, `"msg":"watching"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out buffer
			adoptGlobals(logFlagsOf(t, test.args).logger(&out))
			test.log()
			if got := out.String(); !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("got %q, want %q in it", got, test.want)
			}
		})
	}
}

func logFlagsOf(t *testing.T, args string) *logFlags {
	t.Helper()
	f := &logFlags{}
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.add(set)
	if err := set.Parse(strings.Fields(args)); err != nil {
		t.Fatal(err)
	}
	if err := f.check(); err != nil {
		t.Fatal(err)
	}
	return f
}
