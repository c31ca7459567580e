// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"slices"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/decide/collision"
)

// answers has, by the handler that does not want a child, the one that may want it.
type answers map[string]string

func (a answers) Undecided(but string, _ schema.GroupKind) string { return a[but] }

func (answers) States() []collision.HandlerState { return nil }

// TestChildrenStayUntilAHandlerDecides holds which children stay for now, which handlers run again for them, and what is logged.
func TestChildrenStayUntilAHandlerDecides(t *testing.T) {
	tests := map[string]struct {
		// before and after are the handlers that are waited for, when the child is given up and when the reconcile ends.
		before, after map[string]string
		logged        map[ownership.Place]string
		stays, remain bool
		leaving       []string
		lines         int
	}{
		"no handler may want the child":                {nil, nil, nil, false, false, nil, 0},
		"a handler may want the child":                 {map[string]string{"a": "b"}, map[string]string{"a": "b"}, nil, true, true, []string{"a"}, 1},
		"the handler has succeeded when the pass ends": {map[string]string{"a": "b"}, nil, nil, true, false, []string{"a"}, 0},
		"the log names the handler already":            {map[string]string{"a": "b"}, map[string]string{"a": "b"}, map[ownership.Place]string{ownership.PlaceOf(configMap()): "b"}, true, true, []string{"a"}, 0},
		"the log names another handler":                {map[string]string{"a": "b"}, map[string]string{"a": "b"}, map[ownership.Place]string{ownership.PlaceOf(configMap()): "c"}, true, true, []string{"a"}, 1},
		"the answer is about another handler":          {map[string]string{"b": "a"}, nil, nil, false, false, nil, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			lines := 0
			log := aside{funcr.New(func(string, string) { lines++ }, funcr.Options{})}
			u := undecided{memory: &tt.logged}
			if stays, err := u.stays(configMap(), "a", answers(tt.before)); stays != tt.stays || err != nil {
				t.Errorf("stays is %v: %v", stays, err)
			}
			if remain := u.remain(log, answers(tt.after)); remain != tt.remain || remain != (tt.logged != nil) {
				t.Errorf("remain is %v, and %v is remembered", remain, tt.logged)
			}
			if leaving := u.leaving(); !slices.Equal(leaving, tt.leaving) || lines != tt.lines {
				t.Errorf("%v run again, and %d lines are logged", leaving, lines)
			}
		})
	}
}

// TestAHandlerThatDoesNotRunForChildrenWaits holds that such a handler is not done before the child is gone, unless the other one
// waits for it.
func TestAHandlerThatDoesNotRunForChildrenWaits(t *testing.T) {
	b, c := &dsl.Handler{ID: "b"}, &dsl.Handler{ID: "c", After: []string{"b"}}
	tests := map[string]struct {
		causes []dsl.Cause
		other  *dsl.Handler
		waits  bool
	}{
		"it runs for children":                  {[]dsl.Cause{dsl.Create, dsl.Child}, b, false},
		"it does not":                           {[]dsl.Cause{dsl.Create}, b, true},
		"the other one comes after it":          {[]dsl.Cause{dsl.Create}, &dsl.Handler{ID: "d", After: []string{"a"}}, false},
		"the other one comes after one of that": {[]dsl.Cause{dsl.Create}, &dsl.Handler{ID: "d", After: []string{"e"}}, false},
		"the other one comes after another one": {[]dsl.Cause{dsl.Create}, c, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			all := []*dsl.Handler{{ID: "a", Causes: tt.causes}, b, {ID: "e", After: []string{"a"}}, tt.other}
			u := undecided{handlers: all}
			stays, err := u.stays(configMap(), "a.step", answers{"a.step": tt.other.ID})
			if _, waits := dsl.IsWaiting(err); !stays || waits != tt.waits {
				t.Errorf("stays is %v: %v", stays, err)
			}
		})
	}
}
