// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/engine/children/ownership"
)

// answers is an Asker: by the handler that does not want a child, it has the one that may want it.
type answers struct {
	log     logr.Logger
	waitFor map[string]string
}

func (a *answers) Log() logr.Logger { return a.log }

func (a *answers) Undecided(but string, _ schema.GroupKind) string { return a.waitFor[but] }

// TestChildrenStayUntilAHandlerDecides holds which children stay for now, which handlers run again for them, and what is logged.
func TestChildrenStayUntilAHandlerDecides(t *testing.T) {
	tests := map[string]struct {
		// before and after are the handlers that are waited for, when the child is given up and when the pass ends.
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
			asker := &answers{funcr.New(func(string, string) { lines++ }, funcr.Options{}), tt.before}
			u := undecided{asker: asker, memory: &tt.logged}
			if stays := u.stays(configMap(), "a"); stays != tt.stays {
				t.Errorf("stays is %v", stays)
			}
			asker.waitFor = tt.after
			if remain := u.remain(); remain != tt.remain || remain != (tt.logged != nil) {
				t.Errorf("remain is %v, and %v is remembered", remain, tt.logged)
			}
			if leaving := u.leaving(); !slices.Equal(leaving, tt.leaving) || lines != tt.lines {
				t.Errorf("%v run again, and %d lines are logged", leaving, lines)
			}
		})
	}
}
