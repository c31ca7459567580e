// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/dsl/source"
	"github.com/handwerk-dev/handwerk/samples/functions"
)

// want is a comment of a bad configuration: "# want: text" is a fault of its line that has the
// text in it, "# want@7: text" one at column 7. Where a comment cannot stand in the faulty line,
// "# want+2: text" is for the second line after it.
var want = regexp.MustCompile(`# want(?:\+(-?\d+))?(?:@(\d+))?: `)

type expectation struct {
	line, column int
	text         string
}

func expectations(text string) []expectation {
	var out []expectation
	for i, line := range strings.Split(text, "\n") {
		places := want.FindAllStringSubmatchIndex(line, -1)
		for j, place := range places {
			end := len(line)
			if j+1 < len(places) {
				end = places[j+1][0]
			}
			number := func(group int) int {
				if place[group] < 0 {
					return 0
				}
				n, _ := strconv.Atoi(line[place[group]:place[group+1]])
				return n
			}
			out = append(out, expectation{
				line: i + 1 + number(2), column: number(4), text: strings.TrimSpace(line[place[1]:end]),
			})
		}
	}
	return out
}

func (e expectation) meets(f source.Fault) bool {
	return f.Line == e.line && (e.column == 0 || f.Column == e.column) &&
		strings.Contains(f.Path+": "+f.Message, e.text)
}

// example is a configuration of an archive in testdata.
type example struct {
	name string
	data []byte
}

// begin matches the line before each configuration of an archive.
var begin = regexp.MustCompile(`(?m)^-- (\S+) --\n`)

// examples returns the configurations of the archives in a directory of testdata.
func examples(t testing.TB, dir string) (out []example) {
	t.Helper()
	files, err := filepath.Glob("testdata/" + dir + "/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts := begin.Split(string(data), -1)
		for i, name := range begin.FindAllStringSubmatch(string(data), -1) {
			out = append(out, example{name[1], []byte(texts[i+1])})
		}
	}
	if len(out) == 0 {
		t.Fatalf("found no configurations in %s", dir)
	}
	return out
}

func TestEveryBadConfigurationReportsAllItsFaultsWhereTheyAre(t *testing.T) {
	holdExpectations(t, "bad", 147, registry(t))
}

// TestEveryFaultOfTheLanguageIsReportedWhereItIs is the same for the stock actions.
func TestEveryFaultOfTheLanguageIsReportedWhereItIs(t *testing.T) {
	holdExpectations(t, "language", 137, functions.Registry())
}

// holdExpectations compares the faults of each configuration with the wants in its comments.
func holdExpectations(t *testing.T, dir string, least int, actions *actions.Registry) {
	t.Helper()
	all := examples(t, dir)
	if len(all) < least {
		t.Fatalf("found %d bad configurations, want %d", len(all), least)
	}
	for _, e := range all {
		t.Run(e.name, func(t *testing.T) {
			wanted := expectations(string(e.data))
			if len(wanted) == 0 {
				t.Fatal("the configuration expects nothing")
			}
			faults := faultsOf(t, e.name, e.data, actions)
			for _, fault := range compare(wanted, faults) {
				t.Error(fault)
			}
			for _, fault := range faults {
				if what := unsound(fault, e.name, e.data); what != "" {
					t.Errorf("%v: %s", fault, what)
				}
			}
		})
	}
}

func faultsOf(t *testing.T, file string, data []byte, actions *actions.Registry) source.Faults {
	t.Helper()
	op, err := config.Parse(file, data, actions)
	faults, ok := errors.AsType[source.Faults](err)
	if !ok || len(faults) == 0 {
		t.Fatalf("Parse() = %v, %v, want faults", op, err)
	}
	if op != nil {
		t.Errorf("Parse() returned an operator along with %d faults", len(faults))
	}
	return faults
}

// compare pairs each fault with one expectation.
func compare(wanted []expectation, faults source.Faults) []string {
	var out []string
	met := make([]bool, len(wanted))
	for _, f := range faults {
		found := false
		for i, e := range wanted {
			if !met[i] && e.meets(f) {
				met[i], found = true, true
				break
			}
		}
		if !found {
			out = append(out, "unexpected: "+f.Error())
		}
	}
	for i, e := range wanted {
		if !met[i] {
			out = append(out, fmt.Sprintf("missing: %d:%d: %s", e.line, e.column, e.text))
		}
	}
	return out
}
