// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
)

func TestWhatOnlyTheOperatorTellsIsPlacedWhereItBelongs(t *testing.T) {
	l := &loader{registry: dsl.NewRegistry()}
	l.registry.Action(dsl.Action{Name: "x", Config: func() any { return new(string) }, Build: func(dsl.Build, any) (dsl.Built, error) { return dsl.Built{}, nil }})
	l.add("a.yaml", []byte("apiVersion: handwerk.dev/v1alpha1\nkind: Operator\nmetadata: {name: a}\nresources:\n"+
		"  - resource: foos\n    handlers:\n    - {id: one, causes: [create], x: y}\n    - {id: two, causes: [create], x: y}\n"))
	l.leftovers(errors.Join(
		&dsl.Fault{Resource: "foos", Handler: "two", Err: errors.New("is odd")},
		&dsl.Fault{Resource: "foos", Err: errors.New("is odd")},
		errors.New("operator is\nodd"),
		fmt.Errorf("words around: %w", errors.Join(errors.New("one"), errors.New("other"))),
	))
	want := "a.yaml:1:1: operator is odd\n" +
		"a.yaml:1:1: words around: one other\n" +
		"a.yaml:5:5: resources[0]: is odd\n" +
		"a.yaml:8:7: resources[0].handlers[1]: is odd"
	if got := l.all().Error(); got != want {
		t.Errorf("faults:\n%s\nwant:\n%s", got, want)
	}
}

func TestAnActionThatMakesNoHandlerIsAtFault(t *testing.T) {
	r := dsl.NewRegistry()
	r.Action(dsl.Action{Name: "x", Config: func() any { return new(string) }, Build: func(dsl.Build, any) (dsl.Built, error) { return dsl.Built{}, nil }})
	_, err := Parse("a.yaml", []byte("{apiVersion: handwerk.dev/v1alpha1, kind: Operator, metadata: {name: a},\n"+
		"resources: [{resource: foos, handlers: [{id: one, causes: [create], x: y}]}]}"), r)
	if want := "a.yaml:2:72: resources[0].handlers[0].x: the action made no handler"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
