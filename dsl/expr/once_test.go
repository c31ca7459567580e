// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// keeping returns a compiler of templates of children that may generate values.
func keeping(t *testing.T) *expr.Compiler {
	t.Helper()
	c, err := compiler(t).With(append(expr.ItemVariables(), expr.Current)...)
	if err != nil {
		t.Fatal(err)
	}
	return c.Generating()
}

// TestAGeneratedValueIsTheFallbackOfItsField has templates of a Secret, and where they would generate another value each time.
func TestAGeneratedValueIsTheFallbackOfItsField(t *testing.T) {
	const kept = "current.db.?data.?password"
	another := func(form string) string {
		return "generate() would make another value each time: write " + form + ", which keeps the one that is there"
	}
	in := func(key, text string) map[string]any { return map[string]any{"data": map[string]any{key: text}} }
	password := func(text string) map[string]any { return in("password", "${"+text+"}") }
	tests := map[string]struct {
		tree any
		of   expr.Stored
		want string // what is said, empty for nothing
	}{
		"the fallback of the field":               {tree: password(kept + ".orValue(base64(generate(24)))")},
		"with brackets":                           {tree: password("current['db'][?'data'][?'password'].orValue(generate(24))")},
		"chosen by a condition":                   {tree: password("(self.x ? " + kept + " : optional.none()).orValue(generate(24))")},
		"where a condition wants one":             {tree: password("self.x ? " + kept + ".orValue(generate(24)) : 'none'")},
		"another one before it":                   {tree: password(kept + ".or(" + kept + ").orValue(generate(24))")},
		"several in one value":                    {tree: password(kept + ".orValue(generate(4) + '-' + generate(4))")},
		"in a map of an expression":               {tree: map[string]any{"data": "${{'password': " + kept + ".orValue(generate(24))}}"}},
		"a text that is decoded":                  {tree: map[string]any{"stringData": map[string]any{"password": "${" + kept + ".optMap(v, unbase64(v)).orValue(generate(24))}"}}, of: expr.Stored{Secret: true}},
		"one of several by its key":               {tree: password("current.db[?key].?data.?password.orValue(generate(24))"), of: expr.Stored{Keyed: true}},
		"alone":                                   {tree: password("base64(generate(24))"), want: another(kept + ".orValue(base64(generate(24)))")},
		"the fallback of another field":           {tree: password("current.db.?data.?pasword.orValue(generate(24))"), want: another(kept + ".orValue(…)")},
		"the fallback of another child":           {tree: password("current.other.?data.?password.orValue(generate(24))"), want: another(kept + ".orValue(…)")},
		"of a child as it is afterwards":          {tree: password("children.db.?data.?password.orValue(generate(24))"), want: another(kept + ".orValue(…)")},
		"encoded once more each time":             {tree: password("base64(" + kept + ".orValue(generate(24)))"), want: another(kept + ".orValue(…)")},
		"never none":                              {tree: password("optional.none().orValue(generate(24))"), want: another(kept + ".orValue(…)")},
		"with something else than the field":      {tree: password("(self.x ? " + kept + " : self.?y).orValue(generate(24))"), want: another(kept + ".orValue(…)")},
		"by a condition that asks":                {tree: password("has(current.db.data) ? current.db.data.password : generate(24)"), want: another(kept + ".orValue(…)")},
		"in a condition":                          {tree: password("generate(2) == 'ab' ? 'x' : 'y'"), want: another(kept + ".orValue(generate(2) == 'ab' ? 'x' : 'y')")},
		"a field with an odd name":                {tree: in("a.b", "${generate(24)}"), want: another("current.db.?data[?'a.b'].orValue(generate(24))")},
		"a text that is encoded":                  {tree: map[string]any{"stringData": map[string]any{"password": "${" + kept + ".orValue(generate(24))}"}}, of: expr.Stored{Secret: true}, want: another(kept + ".optMap(v, unbase64(v)).orValue(…)")},
		"several without a key":                   {tree: password(kept + ".orValue(generate(24))"), of: expr.Stored{Keyed: true}, want: another("current.db[?key].?data.?password.orValue(…)")},
		"in a list":                               {tree: map[string]any{"data": []any{"${" + kept + ".orValue(generate(24))}"}}, want: "generate() makes a value once, so it is for a field of a map"},
		"in a part of a text":                     {tree: in("password", "p=${"+kept+".orValue(generate(24))}"), want: "generate() makes a value once, so it is for a field of a map"},
		"in a key":                                {tree: in("${generate(24)}", "x"), want: "generate() makes a value once, so it is for a field of a map"},
		"below a key that is computed":            {tree: map[string]any{"data": map[string]any{"${self.x}": "${" + kept + ".orValue(generate(24))}"}}, want: "generate() makes a value once, so it is for a field of a map"},
		"in the name":                             {tree: map[string]any{"metadata": map[string]any{"name": "${current.db.?metadata.?name.orValue(generate(5))}"}}, of: expr.Stored{Names: [][]string{{"metadata", "name"}}}, want: "generate() cannot make what an object is found by"},
		"of the object itself, in set":            {tree: map[string]any{"token": "${self.?status.?token.orValue(generate(24))}"}, of: expr.Stored{Variable: expr.Self, Way: []string{"status"}}},
		"of the object itself, in set, elsewhere": {tree: map[string]any{"token": "${generate(24)}"}, of: expr.Stored{Variable: expr.Self, Way: []string{"status"}}, want: another("self.?status.?token.orValue(generate(24))")},
		"an annotation of the object itself":      {tree: "${generate(24)}", of: expr.Stored{Variable: expr.Self, Way: []string{"metadata", "annotations", "a/b"}}, want: another("self.metadata.?annotations[?'a/b'].orValue(generate(24))")},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			tmpl, err := keeping(t).Template(test.tree)
			if err != nil {
				t.Fatal(err)
			}
			if test.of.Variable == "" {
				test.of.Variable, test.of.Way = expr.Current, []string{"db"}
			}
			got := ""
			for _, err := range tmpl.Once(test.of) {
				got += err.Error()
			}
			if got != test.want && (test.want == "" || !strings.HasPrefix(got, test.want) || strings.HasPrefix(test.want, "generate() would")) {
				t.Errorf("it says\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func TestGenerateIsRefusedWhereNothingKeepsTheValue(t *testing.T) {
	for _, text := range []string{"generate(24)", "self.?status.?token.orValue(generate(24))", "[1].map(x, generate(2))"} {
		_, err := compiler(t).Value(text)
		if err == nil || !strings.Contains(err.Error(), "current.secret.?data.?password.orValue(base64(generate(24)))") {
			t.Errorf("%s: %v, want that it shows the form", text, err)
		}
	}
}

func TestGenerate(t *testing.T) {
	c := keeping(t)
	eval := func(text string, heard *int) (any, error) {
		p, err := c.Value(text)
		if err != nil {
			t.Fatal(err)
		}
		return p.Eval(expr.Scope{Subject: &dsl.Subject{}, Generated: func() { *heard++ }})
	}
	var seen []string
	heard := 0
	for range 20 {
		got, err := eval("generate(24)", &heard)
		text, _ := got.(string)
		if err != nil || !regexp.MustCompile("^[a-zA-Z0-9]{24}$").MatchString(text) || slices.Contains(seen, text) {
			t.Fatalf("generated %v after %v (%v)", got, seen, err)
		}
		seen = append(seen, text)
	}
	if letters := strings.Join(seen, ""); !strings.ContainsAny(letters, "0123456789") || !strings.ContainsAny(letters, "xyzXYZ") {
		t.Errorf("480 characters are %s", letters)
	}
	if _, err := eval("optional.of('x').orValue(generate(24))", &heard); err != nil || heard != 20 {
		t.Errorf("%d values were heard of, want 20 (%v)", heard, err)
	}
	for _, n := range []int{0, -1, 1001} {
		if _, err := eval(fmt.Sprintf("generate(%d)", n), &heard); err == nil || !strings.Contains(err.Error(), "want 1 to 1000 characters") {
			t.Errorf("generate(%d): %v", n, err)
		}
	}
}

// TestWhatAnExpressionReadsOfChildrenBefore holds the fields of current that are found, and the sources of values.
func TestWhatAnExpressionReadsOfChildrenBefore(t *testing.T) {
	c := keeping(t)
	for text, want := range map[string]string{
		`current.db.?data.?password`:                           "db.data.password; children.db",
		`has(current.db.metadata.uid) && ready(current.db)`:    "db.metadata.uid db.spec db.status db.metadata.generation db.metadata.deletionTimestamp; children.db",
		`current.db[?key].?data.?a`:                            `db.*.data.a; children.db`,
		`current.db[?current.pick.?data.?key.orValue('')].?b`:  `db.*.b pick.data.key; children.db children.pick`,
		`current.db['one'].data.a + current.db[item].b`:        "db.one.data.a db.*.b; children.db",
		`current.db.data[item]`:                                "db.data; children.db",
		`current.db.exists(k, k == self.spec.current)`:         "db; children.db self",
		`current.size() > 0 && self.spec.ok`:                   "; children.* self",
		`self.spec.items.exists(current, current.data == 'x')`: "none; self",
	} {
		p, err := c.Value(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		fields, reads := []string{}, p.Reads()
		for _, field := range p.CurrentFields() {
			fields = append(fields, strings.Join(field, "."))
		}
		if len(fields) == 0 {
			fields = []string{"none"}
		}
		if diff := cmp.Diff(want, strings.Join(fields, " ")+"; "+strings.Join(reads.Values, " ")); diff != "" {
			t.Errorf("%s reads (-want +got):\n%s", text, diff)
		}
		if reads.Children != (fields[0] != "none") {
			t.Errorf("%s: that it reads children is %v", text, reads.Children)
		}
	}
}
