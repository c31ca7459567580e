// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEvalPrintsTheValueOfAnExpression(t *testing.T) {
	file, other := filepath.Join(t.TempDir(), "app.yaml"), filepath.Join(t.TempDir(), "empty.yaml")
	for name, text := range map[string]string{
		file: "apiVersion: example.com/v1\nkind: App\nmetadata: {name: web}\nspec: {replicas: 3}\n", other: "a: b\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	type printed struct {
		Code     int
		Out, Err string
	}
	for name, tt := range map[string]struct {
		args []string
		want printed
	}{
		"of an object in a file":         {[]string{"self.spec.replicas * 2", "-f", file}, printed{0, "6\n", "a whole number; it cost 4 of at most 1000000\n"}},
		"of no object":                   {[]string{"[3, 1].sort()"}, printed{0, "- 1\n- 3\n", "a list; it cost 19 of at most 1000000\n"}},
		"as JSON":                        {[]string{`{"a": dyn(null)}`, "-o", "json"}, printed{0, "{\n  \"a\": null\n}\n", "a map; it cost 0 of at most 1000000\n"}},
		"an optional one that is absent": {[]string{"${self.?spec}"}, printed{0, "null\n", "an optional value; it cost 1 of at most 1000000\n"}},
		"with a field that is not there": {[]string{"self.spec.size", "-f", file}, printed{1, "", "error: evaluating self.spec.size: self.spec.size is not set\n"}},
		"with a syntax error":            {[]string{"1 +"}, printed{1, "", "error: evaluating 1 +: 1:4: unexpected end of the expression\n"}},
		"with children":                  {[]string{"children.web"}, printed{1, "", "error: evaluating children.web: there are no children here\n"}},
		"of a file without an object":    {[]string{"1", "-f", other}, printed{1, "", "error: reading " + other + ": it has no object (want apiVersion and kind)\n"}},
		"of a file without an end":       {[]string{"1", "-f", "/dev/zero"}, printed{1, "", "error: reading /dev/zero: open /dev/zero: it is not a regular file\n"}},
		"without quotes":                 {[]string{"1", "+", "1"}, printed{2, "", "error: want one expression, found 3 arguments (quotes keep it together)\nsee 'operator eval --help'\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			code := b.execute(t.Context(), append([]string{"eval"}, tt.args...))
			if diff := cmp.Diff(tt.want, printed{code, b.out.String(), b.err.String()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
