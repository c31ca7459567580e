// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/shape"
	"github.com/handwerk-dev/handwerk/handlers"
)

// announceParams are the parameters of the function demo.Announce.
type announceParams struct {
	Channel string            `json:"channel"`
	Times   int               `json:"times"`
	To      []string          `json:"to"`
	Extra   map[string]string `json:"extra"`
}

// noteConfig is the form of an action that has every kind of field.
type noteConfig struct {
	Text   string            `yaml:"text" required:"true" doc:"What to note."`
	Level  int8              `yaml:"level" min:"1" doc:"How loud."`
	Pages  uint              `yaml:"pages" doc:"How many."`
	Scale  float32           `yaml:"scale" doc:"How large."`
	Loud   bool              `yaml:"loud" doc:"Whether it is loud."`
	Every  time.Duration     `yaml:"every" doc:"How often."`
	Labels map[string]string `yaml:"labels" doc:"Labels."`
	Body   any               `yaml:"body" doc:"Anything."`
	Lines  []noteLine        `yaml:"lines" doc:"Lines."`
	At     moment            `yaml:"at" doc:"When."`
}

type noteLine struct {
	Text string `yaml:"text" required:"true" doc:"The line."`
}

// moment is text with a form of its own.
type moment struct{ time.Time }

func (m *moment) UnmarshalText(text []byte) error {
	var err error
	if m.Time, err = time.Parse(time.RFC3339, string(text)); err != nil {
		return errors.New("want a time such as 2006-01-02T15:04:05Z")
	}
	return nil
}

func nothing(context.Context, *dsl.Request) error { return nil }

// registry has the action call as it is, an action with a rich form, and some functions.
func registry(t testing.TB) *actions.Registry {
	t.Helper()
	r := actions.NewRegistry()
	standard := handlers.Standard()
	r.Compose(standard.Composer())
	call, found := standard.LookupAction("call")
	if !found {
		t.Fatal("the standard registry has no action call")
	}
	r.Action(call)
	r.Action(actions.Action{
		Name: "note", Doc: "Note something.",
		Config: func() any { return &noteConfig{} },
		Build: func(_ actions.Build, config any) (actions.Built, error) {
			note := config.(*noteConfig)
			if note.Text == "refuse" {
				return actions.Built{}, errors.Join(
					&shape.Misfit{Path: []string{"note", "lines", "1", "text"}, Message: "this line is refused"},
					&shape.Misfit{Path: []string{"note", "missing"}, Message: "this is missing"},
					errors.New("the note\nis refused"),
				)
			}
			return actions.Built{Func: nothing}, nil
		},
	})
	for _, name := range []string{"foo.Announce", "foo.Beat", "demo.Run", "demo.Farewell"} {
		f := dsl.Function{Name: name, Func: nothing}
		if name == "foo.Announce" {
			f.Params = announceParams{}
		}
		r.Function(f)
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return r
}
