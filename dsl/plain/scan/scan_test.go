// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// sample is a Foo of 2.5 KB as an API server sends it, managedFields included.
func sample(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/foo.json")
	if err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		t.Fatal(err)
	}
	return compact.Bytes()
}

func TestRegular(t *testing.T) {
	tests := map[string]struct {
		text string
		want bool
	}{
		"an object":                      {`{"a":1}`, true},
		"nothing in it":                  {`{}`, true},
		"space everywhere":               {" { \"a\" : [ 1 , 2 ] ,\n\t\"b\" : { } } \r\n", true},
		"all kinds of values":            {`{"a":[null,true,false,"",0,-0,-1.5e+10,[],{}]}`, true},
		"escapes in values":              {`{"a":"\"\\\/\b\f\n\r\t\u00e9\ud800"}`, true},
		"no text":                        {``, false},
		"a list":                         {`[]`, false},
		"a string":                       {`"a"`, false},
		"more than one":                  {`{}{}`, false},
		"cut off":                        {`{"a":1`, false},
		"cut off in a string":            {`{"a":"b`, false},
		"cut off in an escape":           {`{"a":"\`, false},
		"cut off in a code":              {`{"a":"\u00e`, false},
		"cut off in a literal":           {`{"a":tru`, false},
		"a comma at the end":             {`{"a":1,}`, false},
		"a comma at the end of a list":   {`{"a":[1,]}`, false},
		"no comma":                       {`{"a":1 "b":2}`, false},
		"no colon":                       {`{"a" 1}`, false},
		"no value":                       {`{"a":}`, false},
		"no quotes":                      {`{a:1}`, false},
		"the wrong bracket":              {`{"a":[1}`, false},
		"a control character":            {"{\"a\":\"\n\"}", false},
		"an escape that there is not":    {`{"a":"\x"}`, false},
		"an invalid code":                {`{"a":"\u12g4"}`, false},
		"a zero in front":                {`{"a":01}`, false},
		"a sign alone":                   {`{"a":-}`, false},
		"a plus":                         {`{"a":+1}`, false},
		"no digit after the point":       {`{"a":1.}`, false},
		"no digit in the exponent":       {`{"a":1e}`, false},
		"not a literal":                  {`{"a":nul}`, false},
		"an escaped key":                 {`{"\u0061":1}`, false},
		"a key that must be escaped":     {`{"k:{\"name\":\"a\"}":1,"\\\b\f\n\r\t":2}`, true},
		"a key cut off in an escape":     {`{"a\`, false},
		"a key with an escape too many":  {`{"a\u0022":1}`, false},
		"a key that never ends":          {`{"a\":1}`, false},
		"a control character in a key":   {"{\"a\x01\":1}", false},
		"a key that is not UTF-8":        {"{\"\xff\":1}", false},
		"a key that is not ASCII":        {`{"grün":1}`, true},
		"an escaped key below":           {`{"a":{"b":[{"\/":1}]}}`, false},
		"a number that may be too large": {`{"a":1e400}`, false},
		"many digits":                    {`{"a":` + strings.Repeat("9", 201) + `}`, false},
		"too deep":                       {`{"a":` + strings.Repeat("[", 1001) + strings.Repeat("]", 1001) + `}`, false},
		"deep":                           {`{"a":` + strings.Repeat("[", 900) + strings.Repeat("]", 900) + `}`, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Regular([]byte(tt.text)); got != tt.want {
				t.Errorf("Regular(%.60s) = %t", tt.text, got)
			}
		})
	}
}

func TestObjectsEnd(t *testing.T) {
	tests := map[string]struct {
		text string
		want int
	}{
		"an object and another one":          {`{"a":1}{"b":2}`, 7},
		"an object after a space":            {` {} x`, 3},
		"nothing yet":                        {``, Short},
		"a space":                            {` `, Short},
		"a list":                             {`[]`, Odd},
		"a key that goes on":                 {`{"a`, Short},
		"a key that goes on after an escape": {`{"a\`, Short},
		"a colon that is to come":            {`{"a"`, Short},
		"a value that is to come":            {`{"a":`, Short},
		"a string that goes on":              {`{"a":"b`, Short},
		"a code that goes on":                {`{"a":"\u00`, Short},
		"a code that is none":                {`{"a":"\u0"}}`, Odd},
		"a literal that goes on":             {`{"a":tr`, Short},
		"a literal that is none":             {`{"a":t}}`, Odd},
		"a literal that is another":          {`{"a":trux`, Odd},
		"a number that may go on":            {`{"a":1`, Short},
		"a comma that is to come":            {`{"a":[1,2]`, Short},
		"a member that is to come":           {`{"a":1,`, Short},
		"a bracket that is another":          {`{"a":[1}`, Odd},
		"a number that is none":              {`{"a":-}`, Odd},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Object([]byte(tt.text)); got != tt.want {
				t.Errorf("Object(%s) = %d, want %d", tt.text, got, tt.want)
			}
		})
	}
	text := sample(t)
	for n := range text {
		if got := Object(text[:n]); got >= 0 {
			t.Fatalf("the first %d bytes end at %d", n, got)
		}
	}
}

// FuzzTree holds the package against the API machinery's decoder: what is regular is JSON to it, and gives the same tree, whole
// and member by member.
func FuzzTree(f *testing.F) {
	for _, text := range []string{
		`{"metadata":{"name":"a"},"spec":{"a":[1,2.5,"x",null,true,{}]}}`,
		`{"a":1e40,"b":-0.0,"c":"\u00e9\ud800\udc00\ud800 \/","d":9223372036854775808,"e":-9223372036854775808}`,
		`{"a":{"b":1},"a":{"c":2}}`, "{\"a\":\"\xff\xc3\",\"\xff\":1}", ` { "a" : [ ] , "b" : { } } `,
		`{"k:{\"name\":\"a\"}":{"\\\"":1,"\n":2}}`, `{"a":"\\","b":"\\\"","c":"\"}{]["}`, `{"a":-0,"b":0.1e-9,"c":123456789012345678901234567890}`,
	} {
		f.Add([]byte(text))
	}
	f.Add(sample(f))
	f.Fuzz(func(t *testing.T, text []byte) {
		if !Regular(text) {
			return
		}
		var want map[string]any
		if err := utiljson.Unmarshal(text, &want); err != nil {
			t.Fatalf("it is regular, and no JSON: %v", err)
		}
		got := Tree(text)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("tree (-want +got):\n%s", diff)
		}
		members := map[string]any{}
		for key, value := range Members(text) {
			members[unquote(key)] = whole(value)
		}
		if diff := cmp.Diff(want, members); diff != "" {
			t.Errorf("members (-want +got):\n%s", diff)
		}
	})
}

// whole decodes a value by walking it.
func whole(value []byte) any {
	switch value[0] {
	case '{':
		out := map[string]any{}
		for key, v := range Members(value) {
			out[unquote(key)] = whole(v)
		}
		return out
	case '[':
		out := []any{}
		for v := range Elements(value) {
			out = append(out, whole(v))
		}
		return out
	case '"':
		return Text(value)
	default:
		return Value(value)
	}
}

func TestMember(t *testing.T) {
	const text = `{"a":1, "b" : {"a":2} ,"a":"three"}`
	for key, want := range map[string]string{"a": `"three"`, "b": `{"a":2}`, "c": ""} {
		if got := string(Member([]byte(text), key)); got != want {
			t.Errorf("member %s is %s, want %s", key, got, want)
		}
	}
	for _, none := range []string{``, `[1]`, `"a"`, `1`} {
		if got := Member([]byte(none), "a"); got != nil {
			t.Errorf("%s has a member: %s", none, got)
		}
	}
}

func BenchmarkRegular(b *testing.B) {
	text := sample(b)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if !Regular(text) {
			b.Fatal("it is not regular")
		}
	}
}

func BenchmarkTree(b *testing.B) {
	text := sample(b)
	b.Run("scan", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Tree(text)
		}
	})
	b.Run("API machinery", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var tree map[string]any
			if err := utiljson.Unmarshal(text, &tree); err != nil {
				b.Fatal(err)
			}
		}
	})
}
