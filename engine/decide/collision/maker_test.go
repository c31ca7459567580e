// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package collision

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// TestMakers holds which handler a child's maker belongs to, and under which name.
func TestMakers(t *testing.T) {
	all := []*dsl.Handler{{ID: "app"}, {ID: "app.web", Was: []string{"old", "older"}}, {ID: "appendix"}}
	tests := map[string]struct {
		maker, renamed string
		handler        string
	}{
		"a handler":                                    {"app", "app", "app"},
		"a step of a handler":                          {"app.db", "app.db", "app"},
		"a handler whose id looks like a step":         {"app.web", "app.web", "app.web"},
		"a step of a handler whose id looks like one":  {"app.web.1", "app.web.1", "app.web"},
		"a handler whose id begins with another one's": {"appendix", "appendix", "appendix"},
		"an earlier id":                                {"old", "app.web", ""},
		"a step of a handler with an earlier id":       {"older.1", "app.web.1", ""},
		"an id that begins with an earlier one":        {"oldest", "oldest", ""},
		"no maker":                                     {"", "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			handler := ""
			if at := HandlerOf(all, tt.maker); at >= 0 {
				handler = all[at].ID
			}
			if renamed := Renamed(all, tt.maker); handler != tt.handler || renamed != tt.renamed {
				t.Errorf("%q is of handler %q and is named %q; want %q, %q", tt.maker, handler, renamed, tt.handler, tt.renamed)
			}
		})
	}
}

// kindOf is a kind of the core group; empty for no kind.
func kindOf(kind string) schema.GroupVersionKind {
	if kind == "" {
		return schema.GroupVersionKind{}
	}
	return schema.GroupVersionKind{Version: "v1", Kind: kind}
}

// TestMayMake holds which handlers may make a child of a kind, by what they declare.
func TestMayMake(t *testing.T) {
	config := schema.GroupKind{Kind: "ConfigMap"}
	child := func(maker, kind string) shape.NamedChild {
		return shape.NamedChild{Maker: maker, Kind: kindOf(kind)}
	}
	made := []shape.NamedChild{child("a", "ConfigMap"), child("b", "Secret"), child("c", "")}
	tests := map[string]struct {
		handler dsl.Handler
		free    bool
		may     bool
	}{
		"one that makes this kind":                 {dsl.Handler{Makers: []string{"a"}}, false, true},
		"one that makes another kind":              {dsl.Handler{Makers: []string{"b"}}, false, false},
		"one that makes a kind that is worked out": {dsl.Handler{Makers: []string{"c"}}, false, true},
		"one of whose makers nothing is known":     {dsl.Handler{Makers: []string{"d"}}, false, true},
		"one that makes no children":               {dsl.Handler{Makers: []string{}}, false, false},
		"Go code that declares nothing":            {dsl.Handler{}, true, true},
		"Go code that declares to read":            {dsl.Handler{Declared: true, Needs: []dsl.Need{{Verbs: []string{"get"}}}}, false, false},
		"Go code that declares to create":          {dsl.Handler{Declared: true, Needs: []dsl.Need{{Verbs: []string{"get", "create"}}}}, true, true},
		"Go code that declares to do all":          {dsl.Handler{Declared: true, Needs: []dsl.Need{{Verbs: []string{"*"}}}}, true, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			free, may := Free(&tt.handler), MayMake(&dsl.Resource{Makes: made}, &tt.handler, config)
			if free != tt.free || may != tt.may {
				t.Errorf("free %t, may make it %t; want %t, %t", free, may, tt.free, tt.may)
			}
		})
	}
}

// TestRefusal holds what a handler gets for a child that another one has.
func TestRefusal(t *testing.T) {
	collision := dsl.CollisionError{}
	if err := ErrorOf("", false, collision, "child web"); err != nil {
		t.Errorf("without a holder: %v", err)
	}
	err := ErrorOf("app", true, collision, "child web")
	if _, waits := dsl.IsWaiting(err); !waits {
		t.Errorf("while the holder is asked, the handler does not wait: %v", err)
	}
	var refused *dsl.CollisionError
	if err := ErrorOf("app", false, collision, "child web"); !errors.As(err, &refused) || refused.Handler != "app" {
		t.Errorf("with a holder: %v", err)
	}
}

// TestAHolderIsAskedOnce holds what becomes of a child over the reconciles in which its holder is asked for it.
func TestAHolderIsAskedOnce(t *testing.T) {
	type found struct {
		Holder string
		Asked  bool
	}
	contest := func(c *Claims[string], turns ...HandlerState) found {
		holder, asked := c.Contest("child", "second", Attempt{Handler: "second", Others: turns}, "first")
		return found{holder, asked}
	}
	turn := HandlerState{Handler: "first"}
	ran := HandlerState{Handler: "first", Ran: true, Succeeded: true}
	tests := map[string]struct {
		// then is the next reconcile, in which the holder has been asked.
		then func(c *Claims[string]) found
		want found
	}{
		"it applies the child, so it keeps it": {func(c *Claims[string]) found {
			c.Begin("first", 0)
			c.BeginApply("child", "first")
			c.Finish("first", true)
			return contest(c, ran)
		}, found{"first", false}},
		"it succeeds without the child, so it has given it up": {func(c *Claims[string]) found {
			c.Begin("first", 0)
			c.Finish("first", true)
			return contest(c, ran)
		}, found{}},
		"it fails, so it keeps the child": {func(c *Claims[string]) found {
			c.Begin("first", 0)
			c.Finish("first", false)
			return contest(c, HandlerState{Handler: "first", Ran: true})
		}, found{"first", false}},
		"it has yet to run, so it keeps the child for now": {func(c *Claims[string]) found { return contest(c, turn) }, found{"first", false}},
		"its filters do not match, so it is silent":        {func(c *Claims[string]) found { return contest(c) }, found{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var m Memory[string]
			now := time.Unix(1000, 0)
			c := Begin(&m, handlers(), now, nil)
			if got := contest(c); got != (found{"first", true}) {
				t.Fatalf("at first: %+v", got)
			}
			if asked := c.Asked(); !cmp.Equal(asked, []string{"first"}) {
				t.Fatalf("asked are %v", asked)
			}
			if got := tt.then(Begin(&m, handlers(), now.Add(time.Second), nil)); got != tt.want {
				t.Errorf("then: %+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestABlindHolderIsAskedAgain holds that a holder whose filters come not to match is asked for the child it keeps.
func TestABlindHolderIsAskedAgain(t *testing.T) {
	var m Memory[string]
	c := Begin(&m, handlers(), time.Unix(1000, 0), nil)
	c.BeginApply("child", "first")
	c.Contest("child", "second", Attempt{Handler: "second"}, "first")
	holders := c.Holders()
	if asked := c.Asked(); len(asked) > 0 || len(holders) != 1 || c.handlers[holders[0]].ID != "first" {
		t.Fatalf("asked are %v, though all see the object; holders are %v", asked, holders)
	}
	c.Ask(holders[0])
	if left := c.Holders(); len(left) > 0 {
		t.Errorf("holders that are asked are %v again", left)
	}
	if asked := c.Asked(); !cmp.Equal(asked, []string{"first"}) {
		t.Errorf("asked are %v", asked)
	}
	c.Finish("second", true)
	if asked := c.Asked(); len(asked) > 0 {
		t.Errorf("asked are %v, though the other handler does not want the child any more", asked)
	}
}
