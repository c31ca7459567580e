// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package collision

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// handlers are those of an object: three that keep its children, one of them for changes alone, and one that
// runs for its deletion alone.
func handlers() []*dsl.Handler {
	always := dsl.ReconcileCauses()
	return []*dsl.Handler{
		{ID: "changes", Causes: []dsl.Cause{dsl.Create, dsl.Update}}, {ID: "first", Causes: always}, {ID: "second", Causes: always},
		{ID: "bye", Causes: []dsl.Cause{dsl.Delete}},
	}
}

// TestContest holds who keeps a child that another handler of the object would change.
func TestContest(t *testing.T) {
	tests := map[string]struct {
		// maker would change the child, made is who made it, as it says.
		maker, made string
		turns       []HandlerState
		reached     string
		done        map[string]bool // nil while the object lives
		holder      string
		asked       bool
	}{
		"it has no maker":                                           {maker: "second"},
		"its own maker":                                             {maker: "second", made: "second"},
		"a handler that is gone made it":                            {maker: "second", made: "former"},
		"a handler that comes later made it":                        {maker: "first", made: "second"},
		"the holder came to it in this pass":                        {maker: "second", made: "first", reached: "first", holder: "first"},
		"who came to it first, where the child does not say":        {maker: "second", reached: "first", holder: "first"},
		"the holder has nothing to do, and can be asked":            {maker: "second", made: "first", holder: "first", asked: true},
		"the holder has nothing to do, and comes for changes alone": {maker: "second", made: "changes"},
		"the holder has run, and has given it up":                   {maker: "second", made: "first", turns: []HandlerState{{Handler: "first", Ran: true, Succeeded: true}}},
		"the holder has run, and failed":                            {maker: "second", made: "first", turns: []HandlerState{{Handler: "first", Ran: true}}, holder: "first"},
		"the holder has yet to run":                                 {maker: "second", made: "first", turns: []HandlerState{{Handler: "first"}}, holder: "first"},
		"the holder made it in a step before":                       {maker: "second", made: "first.1", turns: []HandlerState{{Handler: "first", Step: 1, Ran: true, Succeeded: true}}, holder: "first.1"},
		"another step made it, which has not come to it":            {maker: "first.2", made: "first.1"},
		"at a deletion, who made it for the living object":          {maker: "bye", made: "first", done: map[string]bool{}},
		"at a deletion, another step of the handler itself":         {maker: "bye.2", made: "bye.1", done: map[string]bool{}, holder: "bye.1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := Begin(&Memory[string]{}, handlers(), time.Unix(1000, 0), test.done)
			if test.reached != "" {
				c.BeginApply("child", test.reached)
			}
			at := c.handlers[HandlerOf(c.handlers, test.maker)].ID
			holder, asked := c.Contest("child", test.maker, Attempt{Handler: at, Others: test.turns}, test.made)
			if holder != test.holder || asked != test.asked {
				t.Errorf("held by %q, asked %t; want %q, %t", holder, asked, test.holder, test.asked)
			}
		})
	}
}

// TestWhoIsDoneKeepsItAtADeletion holds that a handler which is through with a deletion keeps what it has made for it.
func TestWhoIsDoneKeepsItAtADeletion(t *testing.T) {
	all := append(handlers(), &dsl.Handler{ID: "last", Causes: []dsl.Cause{dsl.Delete}})
	for done, want := range map[bool]string{true: "bye", false: ""} {
		c := Begin(&Memory[string]{}, all, time.Unix(1000, 0), map[string]bool{"bye": done})
		if holder, _ := c.Contest("child", "last", Attempt{Handler: "last"}, "bye"); holder != want {
			t.Errorf("done %t: held by %q, want %q", done, holder, want)
		}
	}
}
