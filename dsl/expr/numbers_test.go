// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestFractionsInTexts holds that a number with a fraction stands in every text as JSON writes it, and that format() writes it without
// separators of thousands.
func TestFractionsInTexts(t *testing.T) {
	tests := map[string]struct {
		n            float64
		text, fixed1 string
	}{
		"more than a million":   {1234567.5, "1234567.5", "1234567.5"},
		"a small one":           {0.25, "0.25", "0.2"},
		"a whole one":           {5, "5", "5.0"},
		"a whole large one":     {1e20, "100000000000000000000", "100000000000000000000.0"},
		"a very large one":      {1e21, "1e+21", "1000000000000000000000.0"},
		"a very small one":      {1.5e-7, "1.5e-7", "0.0"},
		"one below zero":        {-2500000.125, "-2500000.125", "-2500000.1"},
		"more than a thousand":  {1234.56, "1234.56", "1234.6"},
		"a millionth":           {1e-6, "0.000001", "0.0"},
		"the most digits":       {0.1234567890123456, "0.1234567890123456", "0.1"},
		"less than a millionth": {9e-10, "9e-10", "0.0"},
	}
	c, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			self := &unstructured.Unstructured{Object: map[string]any{"n": tt.n}}
			for text, want := range map[string]string{
				"in ${self.n} a text":                  "in " + tt.text + " a text",
				"${string(self.n)}":                    tt.text,
				"${string(double(self.n))}":            tt.text,
				"${json(self.n)}":                      tt.text,
				"${json([self.n])}":                    "[" + tt.text + "]",
				"${yaml({'x': self.n})}":               "x: " + tt.text + "\n",
				"${'%.1f'.format([self.n])}":           tt.fixed1,
				"${'%.1f'.format([double(self.n)])}":   tt.fixed1,
				"${[self.n].map(n, string(n)).join()}": tt.text,
			} {
				template, err := c.Template(text)
				if err != nil {
					t.Fatal(err)
				}
				got, err := template.Render(Scope{Subject: &dsl.Subject{Object: self}})
				if err != nil || got != want {
					t.Errorf("%s gives %v, %v, want %s", text, got, err, want)
				}
			}
		})
	}
}
