// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl/source"
	"github.com/handwerk-dev/handwerk/handlers"
)

// handler is a configuration with one handler; the text is its action.
func handler(does string) string {
	return header + "resources:\n- resource: foos\n  handlers:\n  - id: a\n    causes: [create]\n" + does
}

// allocated returns how many bytes fn asks for.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestATextFullOfFaultsCostsLittle holds that faults of one text are reported up to a number, with the part
// of their line that they stand in: the whole line for each of thousands took gigabytes.
func TestATextFullOfFaultsCostsLittle(t *testing.T) {
	const many = 2000 // the race detector has the last case ask for 150 MiB
	inLog := func(expression string) string {
		return handler("    log: {message: \"" + strings.Repeat(expression+" ", many) + "\"}\n")
	}
	tests := map[string]struct {
		text string
		// faults is how many are reported, last is the text of the last one.
		faults int
		last   string
	}{
		"expressions that cannot be read":       {inLog("${self.a +}"), 21, "log.message: the text has 20 faults before this expression: from here on it was not checked"},
		"expressions that make no sense":        {inLog("${nothing.a}"), 21, "log.message: the text has 20 faults before this expression: from here on it was not checked"},
		"mistakes in one expression":            {handler("    log: {message: \"${" + strings.Repeat("a = b and ", 400) + "}\"}\n"), 21, "log.message: there are more faults from here on"},
		"unknown names in one predicate":        {handler("    when: \"" + strings.Repeat("nothing && ", 90) + "true\"\n    log: {message: a}\n"), 21, "when: there are more faults from here on"},
		"a text of many lines":                  {handler("    log:\n      message: |\n" + strings.Repeat("        ${self.a +}\n", many)), 21, "log.message: the text has 20 faults before this expression: from here on it was not checked"},
		"texts of one line with a fault each":   {handler("    log: {message: a, values: {x: [" + strings.Repeat("'${self.a +}', ", many) + "]}}\n"), many, "log.values.x[1999]: unexpected end of the expression"},
		"handlers with a fault each":            {header + "resources:\n- resource: foos\n  handlers:\n" + strings.Repeat("  - {id: a, log: {message: '${self.b +}'}}\n", many), 2*many - 1, "log.message: unexpected end of the expression"},
		"a name that is as long as can be":      {handler("    log: {message: \"${" + strings.Repeat("a", 5000) + "}\"}\n"), 1, "log.message: unknown variable \"aaaa"},
		"an expression that is longer than any": {handler("    log: {message: \"${" + strings.Repeat("a", 5001) + "}\"}\n"), 1, "log.message: the expression has 5001 characters, and the most is 5000"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var faults source.Faults
			if took := allocated(func() { faults = faultsOf(t, "x.yaml", []byte(test.text), handlers.Standard()) }); took > 300<<20 {
				t.Errorf("it asked for %d MiB", took>>20)
			}
			if len(faults) != test.faults || !strings.Contains(faults[len(faults)-1].Error(), test.last) {
				t.Errorf("there are %d faults, and the last is %.200s", len(faults), faults[len(faults)-1])
			}
			for _, f := range faults {
				if len(f.Excerpt) > 600 || len(f.Message) > 600 {
					t.Fatalf("a fault has %d bytes of message and %d of excerpt", len(f.Message), len(f.Excerpt))
				}
			}
		})
	}
}

// TestALongLineIsShownAroundTheFault holds that the caret stands under the fault.
func TestALongLineIsShownAroundTheFault(t *testing.T) {
	for _, before := range []int{0, 50, 99, 100, 101, 1000} {
		for _, after := range []int{0, 50, 100, 1000} {
			text := strings.Repeat("ü", before) + "${self. !a}" + strings.Repeat("ä", after)
			f := faultsOf(t, "x.yaml", []byte(handler("    log: {message: \""+text+"\"}\n")), handlers.Standard())[0]
			line, mark, _ := strings.Cut(f.Excerpt, "\n")
			caret := len(mark) - 1
			if runes := []rune(line); caret >= len(runes) || runes[caret] != '!' || len(runes) > 202 {
				t.Errorf("with %d and %d characters around it, the excerpt is\n%s", before, after, f.Excerpt)
			}
		}
	}
}

// TestAConfigurationIsBounded holds that no text of a megabyte becomes gigabytes.
func TestAConfigurationIsBounded(t *testing.T) {
	values := func(of string) string { return handler("    set: {status: {a: [" + of + "]}}\n") }
	half := strings.Repeat("'${self.a}', ", 3000)
	tests := map[string]struct{ text, want string }{
		"expressions":                                  {values(strings.Repeat("'${self.a}', ", 5001)), "5000 expressions"},
		"expressions of several documents":             {values(half) + "---\n" + strings.Replace(values(half), "foos", "bars", 1), "5000 expressions"},
		"predicates":                                   {header + "resources:\n- resource: foos\n  handlers:\n" + many("  - {id: a%d, when: 'true', log: {message: a}}\n", 5001), "5000 expressions"},
		"expressions that aliases repeat":              {values("&x '" + strings.Repeat("${self.a} ", 100) + "', " + strings.Repeat("*x, ", 60)), "5000 expressions"},
		"texts that aliases repeat":                    {values("&x '" + strings.Repeat("x", 100_000) + "', " + strings.Repeat("*x, ", 100)), "8 MiB of text"},
		"texts with an expression that aliases repeat": {values("&x '${self.a}" + strings.Repeat("x", 100_000) + "', " + strings.Repeat("*x, ", 10)), "512 KiB of text with expressions in it"},
		"values": {values(strings.Repeat("a, ", 100_000)), "100000 values"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var faults source.Faults
			if took := allocated(func() { faults = faultsOf(t, "x.yaml", []byte(test.text), handlers.Standard()) }); took > 200<<20 {
				t.Errorf("it asked for %d MiB", took>>20)
			}
			want := "the configuration holds more than " + test.want + ", counting what aliases repeat"
			if len(faults) != 1 || faults[0].Message != want {
				t.Errorf("there are %d faults, and the first is %.200s", len(faults), faults[0])
			}
		})
	}
}

func many(format string, n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, format, i)
	}
	return out.String()
}
