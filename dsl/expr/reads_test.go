// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWhatAnExpressionAsksFor holds the parents of fields whose presence expressions test.
func TestWhatAnExpressionAsksFor(t *testing.T) {
	c := compiler(t)
	for text, want := range map[string]string{
		`has(self.spec.tls.secret)`:                "spec.tls",
		`has(self.spec)`:                           "",
		`self.spec.tls.?secret.orValue('')`:        "spec.tls",
		`self.spec.tls[?'secret'].orValue('')`:     "spec.tls",
		`self.spec.?tls.?secret.orValue('')`:       "spec",
		`self.?spec.tls.secret.orValue('')`:        "",
		`self.spec.tls.secret`:                     "",
		`has(self.metadata.name)`:                  "metadata",
		`self.spec.items.exists(i, has(i.size))`:   "",
		`has(self.spec.a.b) && has(self.spec.c)`:   "spec.a spec",
		`self.spec.items.map(self, has(self.a.b))`: "",
	} {
		p, err := c.Value(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var words []string
		for _, path := range p.Reads().Parents {
			words = append(words, path.String())
		}
		if diff := cmp.Diff(want, strings.Join(words, " ")); diff != "" {
			t.Errorf("%s asks for something in (-want +got):\n%s", text, diff)
		}
	}
}

// TestWhatAnExpressionReads holds the paths that are found in expressions, and what else is known of them.
func TestWhatAnExpressionReads(t *testing.T) {
	tests := map[string]string{
		`self.spec.size`:                                          "spec.size",
		`self.spec.size + self.spec.size`:                         "spec.size spec.size",
		`self['spec']["size"]`:                                    "spec.size",
		`self.?spec.?size.orValue(1)`:                             "spec.size",
		`self.?spec.size.optMap(s, s + 1).orValue(1)`:             "spec.size spec.size",
		`self[?'spec'].?size.hasValue()`:                          "spec.size",
		`has(self.spec.size) ? self.spec.size : self.status.size`: "spec.size spec.size status.size",
		`self.spec.items[0].size`:                                 "spec.items",
		`self.spec.sizes[self.spec.pick]`:                         "spec.sizes spec.pick",
		`self[self.spec.pick]`:                                    " spec.pick",
		`self.spec.items.map(i, i.size + self.spec.more)`:         "spec.items spec.more",
		`self.spec.items.map(self, self.size)`:                    "spec.items",
		`self.spec.items.map(self, self.size + .self.spec.more)`:  "spec.items spec.more",
		`[self.spec.a, {'k': self.spec.b}.k]`:                     "spec.a spec.b",
		`size(self)`:                                              "",
		`ready(self)`:                                             "",
		`self == self`:                                            " ",
		`self.metadata.labels['a.b/c']`:                           `metadata.labels["a.b/c"]`,
		`self.metadata.name + self.kind + self.apiVersion`:        "none",
		`self.metadata.resourceVersion`:                           "none",
		`self.metadata.generation`:                                "metadata.generation",
		`size(self.metadata.managedFields)`:                       "none",
		`children.web.status`:                                     "none children",
		`related['a'].data.x + self.data.y`:                       "data.y related",
		`children.size() + related.size()`:                        "none children related",
		`old == null`:                                             "none back",
		`size(diff) + self.spec.size`:                             "spec.size back",
		`params.x + string(now) + cause + event`:                  "none",
	}
	c := compiler(t)
	for text, want := range tests {
		p, err := c.Value(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		reads := p.Reads()
		var words []string
		for _, path := range reads.Paths {
			words = append(words, path.String())
		}
		if len(words) == 0 {
			words = []string{"none"}
		}
		for _, more := range []struct {
			is   bool
			word string
		}{{reads.Children, "children"}, {reads.Related, "related"}, {!reads.Only, "back"}} {
			if more.is {
				words = append(words, more.word)
			}
		}
		if diff := cmp.Diff(want, strings.Join(words, " ")); diff != "" {
			t.Errorf("%s reads (-want +got):\n%s", text, diff)
		}
	}
}

// TestWhichChildrenAnExpressionReads holds the names of children, related objects and indexes that are read.
func TestWhichChildrenAnExpressionReads(t *testing.T) {
	c := compiler(t)
	for text, want := range map[string]string{
		`children.web.status.x + children.db.data.y`:       "db web; ;",
		`ready(children.web) && related.plan.data.x == ''`: "web; plan;",
		`children.size() > 1 && children.web.status.x`:     "* web; ;",
		`related.exists(name, name == 'x')`:                "; *;",
		`indexes.claims['x'].size() < 2`:                   "; ; claims",
		`self.spec.x`:                                      "; ;",
	} {
		p, err := c.Value(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		r := p.Reads().And(p.Reads()) // each once
		got := strings.Join([]string{strings.Join(r.ChildNames, " "), strings.Join(r.RelatedNames, " "), strings.Join(r.Indexes, " ")}, "; ")
		if diff := cmp.Diff(want, strings.TrimRight(got, " ")); diff != "" {
			t.Errorf("%s reads (-want +got):\n%s", text, diff)
		}
	}
}
