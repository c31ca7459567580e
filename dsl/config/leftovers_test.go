// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
)

func TestFaultsOfTheWholeOperatorArePlacedWhereTheyBelong(t *testing.T) {
	r := actions.NewRegistry()
	r.Action(actions.Action{Name: "x", Config: func() any { return new(string) }, Build: func(actions.Build, any) (actions.Built, error) { return actions.Built{}, nil }})
	l := newLoader(r)
	l.add("a.yaml", []byte("apiVersion: handwerk.dev/v1alpha1\nkind: Operator\nmetadata: {name: a}\nresources:\n"+
		"  - resource: foos\n    keep: [1]\n    handlers:\n    - {id: one, causes: [create], x: y}\n    - {id: two, causes: [create], x: y}\n"))
	op := l.compile()
	foos := op.Resources()[0]
	two, odd := foos.Handlers()[1], errors.New("is odd")
	l.parts[0].Faults = nil
	l.invalid(errors.Join(
		&dsl.Fault{Place: dsl.Place{Resource: foos, Handler: two, Field: "causes[0]"}, Err: odd},
		&dsl.Fault{Place: dsl.Place{Resource: foos, Handler: two, Field: "x"}, Err: odd, Unwanted: true},
		&dsl.Fault{Place: dsl.Place{Resource: foos, Handler: two}, Err: odd, First: &dsl.Place{Resource: foos}},
		&dsl.Fault{Place: dsl.Place{Resource: foos}, Err: odd},
		&dsl.Fault{Place: dsl.Place{Resource: foos}, Err: odd, Lacks: "keep"},
		&dsl.Fault{Place: dsl.Place{Field: "metadata.name"}, Err: odd},
		errors.New("operator is\nodd"),
		fmt.Errorf("words around: %w", errors.Join(errors.New("one"), errors.New("other"))),
	))
	want := "a.yaml:1:1: operator is odd\n" +
		"a.yaml:1:1: words around: one other\n" +
		"a.yaml:3:18: metadata.name: is odd\n" +
		"a.yaml:5:5: resources[0]: is odd\n" +
		"a.yaml:9:7: resources[0].handlers[1]: is odd (first at a.yaml:5:5)\n" +
		"a.yaml:9:26: resources[0].handlers[1].causes[0]: is odd\n" +
		"a.yaml:9:35: resources[0].handlers[1].x: is odd"
	if got := l.all().Error(); got != want {
		t.Errorf("faults:\n%s\nwant:\n%s", got, want)
	}
}

func TestAnActionThatMakesNoHandlerIsAtFault(t *testing.T) {
	r := actions.NewRegistry()
	r.Action(actions.Action{Name: "x", Config: func() any { return new(string) }, Build: func(actions.Build, any) (actions.Built, error) { return actions.Built{}, nil }})
	_, err := Parse("a.yaml", []byte("{apiVersion: handwerk.dev/v1alpha1, kind: Operator, metadata: {name: a},\n"+
		"resources: [{resource: foos, handlers: [{id: one, causes: [create], x: y}]}]}"), r)
	if want := "a.yaml:2:72: resources[0].handlers[0].x: the action made no handler"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
