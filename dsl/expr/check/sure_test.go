// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// optionals is a schema as generators write it: spec itself is not required.
const optionals = `{"type": "object", "properties": {
  "spec": {"type": "object", "required": ["image"], "properties": {
    "image": {"type": "string"}, "replicas": {"type": "integer", "default": 1}, "host": {"type": "string"}, "a-b": {"type": "string"},
    "tls": {"type": "object", "required": ["secret"], "properties": {"secret": {"type": "string"}, "issuer": {"type": "string"}}},
    "env": {"type": "object", "additionalProperties": {"type": "string"}},
    "users": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}}
  }},
  "status": {"type": "object", "properties": {"url": {"type": "string"}}}
}}`

// TestAFieldThatNeedNotBeSet has expressions, and the paths in the object that are reported.
func TestAFieldThatNeedNotBeSet(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"a field that must be set":                             {"self.spec.image", ""},
		"a field with a default":                               {"self.spec.replicas + 1", ""},
		"a field that need not be set":                         {"self.spec.host + '/'", "self.spec.host"},
		"a field of the status":                                {"self.status.url", "self.status.url"},
		"an odd name":                                          {"self.spec['a-b'] + 'x'", "self.spec['a-b']"},
		"labels, which selectors may require":                  {"self.metadata.labels['x']", ""},
		"an optional field":                                    {"self.spec.?host.orValue('x')", ""},
		"an optional field further on":                         {"self.spec.?tls.secret.orValue('x')", ""},
		"a field of one that need not be set":                  {"self.spec.tls.secret", "self.spec.tls"},
		"two of them, where the second follows from the first": {"self.spec.tls.issuer", "self.spec.tls"},
		"the same field twice":                                 {"self.spec.host == 'a' || self.spec.host == 'b'", "self.spec.host"},
		"two fields":                                           {"self.spec.host + self.status.url", "self.spec.host self.status.url"},
		"asked before":                                         {"has(self.spec.host) && self.spec.host == 'x'", ""},
		"asked behind, which CEL takes as well":                {"self.spec.host == 'x' && has(self.spec.host)", ""},
		"asked in a condition":                                 {"has(self.spec.host) ? self.spec.host : 'x'", ""},
		"asked the other way round":                            {"!has(self.spec.host) ? 'x' : self.spec.host", ""},
		"asked for the other outcome":                          {"has(self.spec.host) ? 'x' : self.spec.host", "self.spec.host"},
		"not there, or":                                        {"!has(self.spec.host) || self.spec.host == 'x'", ""},
		"there, or":                                            {"has(self.spec.host) || self.spec.host == 'x'", "self.spec.host"},
		"asked with others":                                    {"self.spec.replicas > 1 && has(self.spec.host) && self.spec.host == 'x'", ""},
		"asked with others the other way round":                {"!has(self.spec.host) || self.spec.replicas > 1 || self.spec.host == 'x'", ""},
		"asked within brackets":                                {"(has(self.spec.host) && self.spec.replicas > 1) ? self.spec.host : 'x'", ""},
		"asked by an optional value":                           {"self.spec.?host.hasValue() ? self.spec.host : 'x'", ""},
		"asked by what stands instead":                         {"self.spec.?host.orValue('') != '' ? self.spec.host : 'x'", ""},
		"asked by what stands instead, further on":             {"self.spec.?tls.?issuer.orValue('') == 'x' && self.spec.tls.issuer == 'x'", ""},
		"asked by how many there are":                          {"size(self.spec.?users.orValue([])) > 0 ? self.spec.users[0].name : 'x'", ""},
		"asked by a macro":                                     {"self.spec.?users.orValue([]).exists(u, u.name == 'x') && self.spec.users[0].name == 'x'", ""},
		"asked by a function":                                  {"self.spec.?host.orValue('').startsWith('x') && self.spec.host == 'x'", ""},
		"asked with what it holds":                             {"self.spec.?host == optional.of('x') ? self.spec.host : 'x'", ""},
		"asked by optMap":                                      {"self.spec.?host.optMap(h, h == 'x').orValue(false) && self.spec.host == 'x'", ""},
		"asked and compared":                                   {"has(self.spec.host) == true ? self.spec.host : 'x'", ""},
		"asked in a list":                                      {"[has(self.spec.host), has(self.spec.tls)].all(x, x) && self.spec.host == 'x'", ""},
		"asked in an outcome":                                  {"(self.spec.replicas > 1 ? has(self.spec.host) : false) && self.spec.host == 'x'", ""},
		"asked whether something else stands instead":          {"self.spec.?host.orValue('') != '' ? self.status.url : 'x'", "self.status.url"},
		"no value, for the outcome without":                    {"self.spec.?host.hasValue() ? 'x' : self.spec.host", "self.spec.host"},
		"asked by its key":                                     {"'host' in self.spec && self.spec.host == 'x'", ""},
		"asked of another one":                                 {"has(self.status.url) && self.spec.host == 'x'", "self.spec.host"},
		"asked of what is in it":                               {"has(self.spec.tls) && has(self.spec.tls.issuer) ? self.spec.tls.issuer : self.spec.image", ""},
		"asked of what is in one that need not be set":         {"has(self.spec.tls.issuer)", "self.spec.tls"},
		"asked of the one, read in the other":                  {"has(self.spec.tls) ? self.spec.tls.issuer : 'x'", "self.spec.tls.issuer"},
		"within a macro":                                       {"self.spec.users.exists(u, u.name == self.spec.host)", "self.spec.users self.spec.host"},
		"an element of a map":                                  {"has(self.spec.env) ? self.spec.env['A'] : ''", ""},
		"a field of an element without a known schema":         {"has(self.spec.users) ? self.spec.users[0].name : ''", ""},
		"compared with null, which is asking too late":         {"self.spec.host == null", "self.spec.host"},
	}
	c := compiler(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			program, err := c.Value(test.text)
			if err != nil {
				t.Fatal(err)
			}
			s := shape.Schemas{Self: shape.Shape{Schema: schema(t, optionals)}}
			if got := doubted(t, check.Program(program, s)); got != test.want {
				t.Errorf("%s: it reports %q, want %q", test.text, got, test.want)
			}
			s.Unset = true
			if got := doubted(t, check.Program(program, s)); got != "" {
				t.Errorf("%s: it reports %q where the expression handles its absence", test.text, got)
			}
			s.Unset, s.Kind.Own = false, true
			if got := doubted(t, check.Program(program, s)); got != "" {
				t.Errorf("%s: it reports %q of one of Kubernetes' own kinds", test.text, got)
			}
		})
	}
}

// doubted are the paths that an error reports as doubtful.
func doubted(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	faulty, is := errors.AsType[*expr.Error](err)
	if !is || len(faulty.Issues) > 0 {
		t.Fatalf("something is wrong: %v", err)
	}
	var ways []string
	for _, doubt := range faulty.Doubts {
		way, rest, _ := strings.Cut(doubt.Message, " need not be set")
		if !strings.Contains(rest, fmt.Sprintf("has(%s)", way)) && !strings.Contains(rest, "'a-b' in self.spec") {
			t.Errorf("it says %s", doubt.Message)
		}
		ways = append(ways, way)
	}
	return strings.Join(ways, " ")
}

// TestWhatSomethingBeforeHasMadeSure holds what a predicate makes sure of, and that it counts.
func TestWhatSomethingBeforeHasMadeSure(t *testing.T) {
	c := compiler(t)
	for text, want := range map[string][]string{
		"has(self.spec.host)":                             {"self.spec.host", "self", "self.spec"},
		"has(self.spec.host) || self.spec.replicas > 1":   nil,
		"!(has(self.spec.host) && self.spec.paused)":      nil,
		"!(!has(self.spec.host) || self.spec.paused)":     {"self.spec.host", "self", "self.spec"},
		"self.spec.replicas > 1":                          nil,
		"self.spec.?tls.?issuer.hasValue()":               {"self", "self.spec", "self.spec.tls", "self.spec.tls.issuer"},
		"has(children.web.status.url) && self.spec.ready": {"children.web.status.url", "children", "children.web", "children.web.status"},
	} {
		predicate, err := c.Predicate(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, check.Sure(predicate)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	tmpl, err := c.Template(map[string]any{"a": "${self.spec.host}", "b": "${self.spec.host} ${self.spec.tls.issuer}"})
	if err != nil {
		t.Fatal(err)
	}
	s := shape.Schemas{Self: shape.Shape{Schema: schema(t, optionals)}}
	if got := check.Template(tmpl, s, nil); len(got) != 2 {
		t.Errorf("a template reports %v, want each field once", got)
	}
	s.Sure = []string{"self.spec.host", "self.spec.tls", "self.spec.tls.issuer"}
	if got := check.Template(tmpl, s, nil); len(got) != 0 {
		t.Errorf("paths that are always set are reported: %v", got)
	}
}
