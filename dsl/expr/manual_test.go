// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"slices"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl/expr/manual"
)

// unusable are functions of Kubernetes that need the variable authorizer, which only its webhooks have.
var unusable = []string{
	"allowed", "check", "error", "errored", "fieldSelector", "group", "labelSelector", "name", "namespace", "path", "reason", "resource",
	"serviceAccount", "subresource",
}

// TestTheManualHasEveryFunction holds the manual against the functions that the compiler knows, both ways.
func TestTheManualHasEveryFunction(t *testing.T) {
	c, err := New()
	if err != nil {
		t.Fatal(err)
	}
	// A macro of a library is known by its name alone, as in bind for cel.bind.
	last := func(name string) string { return name[strings.LastIndex(name, ".")+1:] }
	known := manual.Names()
	for _, name := range c.callable {
		if same := func(k string) bool { return k == name || c.macros[name] != nil && last(k) == name }; !slices.ContainsFunc(known, same) && !slices.Contains(unusable, name) {
			t.Errorf("the manual lacks %s", name)
		}
	}
	for _, name := range known {
		if !slices.Contains(c.callable, name) && c.macros[last(name)] == nil {
			t.Errorf("the manual has %s, which is no function", name)
		}
	}
	for _, name := range unusable {
		if !slices.Contains(c.callable, name) {
			t.Errorf("%s is no function any more", name)
		}
	}
}

// TestEveryEntryOfTheManualShowsItsFunction holds that an example has the function in it, and that texts are sentences.
func TestEveryEntryOfTheManualShowsItsFunction(t *testing.T) {
	for _, group := range manual.Groups() {
		for _, f := range group.Functions {
			shows := func(text string) bool {
				return slices.ContainsFunc(f.Names, func(name string) bool { return strings.Contains(text, name+"(") })
			}
			if group.Title != "Operators" && (!shows(f.Example) || !shows(f.Call)) {
				t.Errorf("%s: neither %s nor %s may lack it", f.Names, f.Call, f.Example)
			}
			if f.Gives == "" || f.Result == "" || !strings.HasSuffix(f.Doc, ".") {
				t.Errorf("%s: want what it gives, a result, and a sentence: %+v", f.Names, f)
			}
		}
	}
}
