// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/sandbox/cases"
)

// file are the reports of one file.
type file struct {
	name    string
	reports []cases.Report
	took    time.Duration
	failed  int
	// skipped is how many did not run, and why says why.
	skipped int
	why     string
}

// byFile puts the reports of each file together.
func byFile(all []cases.Report) (out []*file) {
	for _, r := range all {
		if len(out) == 0 || out[len(out)-1].name != r.File {
			out = append(out, &file{name: r.File})
		}
		f := out[len(out)-1]
		f.reports = append(f.reports, r)
		f.took += r.Took
		if len(r.Failures) > 0 {
			f.failed++
		}
		if r.Skipped != "" {
			f.skipped, f.why = f.skipped+1, r.Skipped
		}
	}
	return out
}

// The colors of verdicts, as terminals know them.
const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	reset  = "\x1b[0m"
)

// Text writes the reports for people, with colors or without.
func Text(w io.Writer, all []cases.Report, colors bool) error {
	paint := func(color, word string) string {
		if !colors {
			return word
		}
		return color + word + reset
	}
	var out strings.Builder
	count, failed := 0, 0
	for _, f := range byFile(all) {
		word := paint(green, "ok  ")
		if f.failed > 0 {
			word = paint(red, "FAIL")
		} else if f.skipped == len(f.reports) {
			word = paint(yellow, "skip")
		}
		for _, r := range f.reports {
			if len(r.Failures) == 0 {
				continue
			}
			if r.Case != "" {
				fmt.Fprintf(&out, "--- %s\n", plain.Escaped(r.Case, "")) // it cannot look like another line
			}
			for _, failure := range r.Failures {
				fmt.Fprintf(&out, "%s\n", failure)
			}
		}
		fmt.Fprintf(&out, "%s  %s  %s  %.2fs", word, f.name, counted(len(f.reports), "case"), f.took.Seconds())
		if f.skipped > 0 {
			fmt.Fprintf(&out, "  %d skipped: %s", f.skipped, f.why)
		}
		out.WriteString("\n")
		count, failed = count+len(f.reports), failed+f.failed
	}
	if failed > 0 {
		fmt.Fprintln(&out, paint(red, fmt.Sprintf("%d of %s failed", failed, counted(count, "case"))))
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Coverage writes how much of each operator the cases have run, and which parts they have not.
func Coverage(w io.Writer, parts []cases.Part) error {
	var out strings.Builder
	for len(parts) > 0 {
		operator, ran := parts[0].Operator, 0
		var missing []string
		n := 0
		for ; n < len(parts) && parts[n].Operator == operator; n++ {
			if parts[n].Times > 0 {
				ran++
			} else {
				missing = append(missing, parts[n].Name)
			}
		}
		fmt.Fprintf(&out, "operator %s: %d of %d parts ran\n", operator, ran, n)
		for _, name := range missing {
			fmt.Fprintf(&out, "  never: %s\n", name)
		}
		parts = parts[n:]
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// Failed reports whether something is not as it should be.
func Failed(all []cases.Report) bool {
	for _, r := range all {
		if len(r.Failures) > 0 {
			return true
		}
	}
	return false
}

// result is a case in JSON.
type result struct {
	File     string          `json:"file"`
	Case     string          `json:"case,omitempty"`
	OK       bool            `json:"ok"`
	Seconds  float64         `json:"seconds"`
	Skipped  string          `json:"skipped,omitempty"`
	Failures []cases.Failure `json:"failures,omitempty"`
}

// JSON writes the reports as a list.
func JSON(w io.Writer, all []cases.Report) error {
	list := []result{}
	for _, r := range all {
		failures := slices.Clone(r.Failures)
		for i := range failures {
			failures[i].Edits = nil // they are for --update alone
		}
		list = append(list, result{r.File, r.Case, len(r.Failures) == 0, r.Took.Seconds(), r.Skipped, failures})
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(list)
}

// The form of JUnit, as CI systems read it.
type (
	suites struct {
		XMLName xml.Name `xml:"testsuites"`
		Suites  []suite  `xml:"testsuite"`
	}
	suite struct {
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Time     string     `xml:"time,attr"`
		Cases    []testcase `xml:"testcase"`
	}
	testcase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		File    string   `xml:"file,attr"`
		Time    string   `xml:"time,attr"`
		Failure *failure `xml:"failure,omitempty"`
		Skipped *failure `xml:"skipped,omitempty"`
	}
	failure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes the reports as a file of JUnit.
func JUnit(w io.Writer, all []cases.Report) error {
	var out suites
	for _, f := range byFile(all) {
		s := suite{Name: f.name, Tests: len(f.reports), Failures: f.failed, Skipped: f.skipped, Time: seconds(f.took)}
		for _, r := range f.reports {
			c := testcase{Class: f.name, Name: r.Case, File: f.name, Time: seconds(r.Took)}
			if len(r.Failures) > 0 {
				var text []string
				for _, one := range r.Failures {
					text = append(text, one.String())
				}
				c.Failure = &failure{r.Failures[0].Message, strings.Join(text, "\n")}
			}
			if r.Skipped != "" {
				c.Skipped = &failure{Message: r.Skipped}
			}
			s.Cases = append(s.Cases, c)
		}
		out.Suites = append(out.Suites, s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
